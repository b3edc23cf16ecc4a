"""Compares `graph` and `upgrade` with the edges that opm draws.

    upgrades.py EDGES PROGRAM STORE CATALOG [PAIRS]

EDGES has lines `package channel from rule to`, with tabs, from `opm-oracle graph`. Every package must have the same edges. For random
pairs of versions the fewest steps are searched here along opm's edges, and must be those of `upgrade` in every channel.
"""

import json
import random
import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

EDGES, PROGRAM, STORE, CATALOG = sys.argv[1:5]
PAIRS = int((sys.argv[5:] or ["1000"])[0])


def run(*arguments):
    command = [PROGRAM, arguments[0], "--store", STORE, CATALOG, *arguments[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def label(text):
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)


def drawn(package):
    """Returns the edges that `graph` draws, and the entries of each channel."""
    edges, channel, names = set(), None, {}
    for line in run("graph", package, "--format", "mermaid").stdout.splitlines():
        if found := re.fullmatch(r'  subgraph c\d+\["(.*)"\]', line):
            channel, names = label(found[1]), {}
        elif found := re.fullmatch(r'    (n\d+)\["(.*)"\]', line):
            names[found[1]] = label(found[2])
        elif found := re.fullmatch(r"    (n\d+)-- (\w+) --> (n\d+)", line):
            edges.add((channel, names[found[1]], found[2], names[found[3]]))
    return edges


def fewest(edges, start, goal):
    """Returns the number of steps by trying ever longer ways."""
    reached, steps = {start}, 0
    while goal not in reached:
        more = {to for one in reached for to in edges[one]} - reached
        if not more:
            return None
        reached |= more
        steps += 1
    return steps


expected = defaultdict(set)
for line in open(EDGES, encoding="utf-8"):
    package, *edge = line.rstrip("\n").split("\t")
    expected[package].add(tuple(edge))
listed = json.loads(subprocess.run([PROGRAM, "ls", "--json", "--store", STORE, CATALOG], capture_output=True, check=True).stdout)
packages = [one["name"] for one in listed if one["name"]]
with ThreadPoolExecutor(2) as pool:
    for package, edges in zip(packages, pool.map(drawn, packages)):
        if edges != expected[package]:
            missing, more = expected[package] - edges, edges - expected[package]
            sys.exit(f"{package}: opm alone has {sorted(missing)[:3]}, the mirror alone has {sorted(more)[:3]}")

    chosen = random.Random(1)
    with_edges = [package for package in packages if expected[package]]
    asked = []
    for _ in range(PAIRS):
        package = chosen.choice(with_edges)
        names = sorted({name for edge in expected[package] for name in (edge[1], edge[3])})
        asked.append((package, chosen.choice(names), chosen.choice(names)))
    answers = pool.map(lambda one: run("upgrade", "--json", *one), asked)
    possible = 0
    for (package, start, goal), answer in zip(asked, answers):
        if not answer.stdout:
            sys.exit(f"{package} {start} {goal}: {answer.stderr}")
        for way in json.loads(answer.stdout)["channels"]:
            edges = defaultdict(set)
            for channel, old, _, new in expected[package]:
                if channel == way["channel"]:
                    edges[old].add(new)
            entries = {new for updated in edges.values() for new in updated} | set(edges)
            # A bundle that only other channels have can be no goal here, and a start only by a range.
            if start not in entries or goal not in entries:
                continue
            steps = None if way["steps"] is None else len(way["steps"])
            if steps is None and way["reason"].endswith("is not in the channel"):
                continue
            possible += steps is not None
            if steps != fewest(edges, start, goal):
                sys.exit(f"{package} {way['channel']} {start} {goal}: {steps} steps, opm's edges give {fewest(edges, start, goal)}")
print(f"{len(packages)} packages, {sum(map(len, expected.values()))} edges, {possible} ways of {PAIRS} pairs")
