"""Compares the steps of `plan` with those that OLM v0 takes.

    olm_steps.py STEPS PROGRAM STORE CATALOG

STEPS has lines from `olm-oracle`: package, channel, installed bundle and its steps, with tabs between. Each is a Subscription of one
plan, so this is also a plan of as many operators. A channel that OLM refuses, with `!` in place of the steps, has none here.
"""

import json
import subprocess
import sys

from installed import subscription

STEPS, PROGRAM, STORE, CATALOG = sys.argv[1:5]
lines = [line.rstrip("\n").split("\t") for line in open(STEPS, encoding="utf-8")]
subscriptions = [subscription(channel, package, channel, bundle) for package, channel, bundle, *_ in lines]
items = {"apiVersion": "v1", "kind": "List", "items": subscriptions}
command = [PROGRAM, "plan", "--json", "--store", STORE, "--from", CATALOG, "--to", CATALOG, "-"]
answer = subprocess.run(command, input=json.dumps(items), capture_output=True, text=True, check=False)
if not answer.stdout:
    sys.exit(answer.stderr[-2000:])
rows = json.loads(answer.stdout)["operators"]
if len(rows) != len(lines):
    sys.exit(f"{len(rows)} rows for {len(lines)} operators")
steps = 0
for (package, channel, bundle, *expected), row in zip(lines, rows):
    found = [step["bundle"] for step in row["now"]]
    if found != [step for step in expected if step != "!"]:
        sys.exit(f"{package} {channel} {bundle}: OLM goes {expected}, the plan goes {found}")
    steps += len(found)
print(f"{len(lines)} installed versions, {steps} steps")
