"""Compares `graph` with the edges that opm draws.

    upgrades.py EDGES PROGRAM STORE CATALOG

EDGES has lines `package channel from rule to`, with tabs, from `opm-oracle graph`. Every package must have the same edges.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

EDGES, PROGRAM, STORE, CATALOG = sys.argv[1:]


def label(text):
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)


def drawn(package):
    """Returns the edges that `graph` draws."""
    edges, channel, names = set(), None, {}
    command = [PROGRAM, "graph", "--store", STORE, CATALOG, package, "--format", "mermaid"]
    for line in subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines():
        if found := re.fullmatch(r'  subgraph c\d+\["(.*)"\]', line):
            channel, names = label(found[1]), {}
        elif found := re.fullmatch(r'    (n\d+)\["(.*)"\]', line):
            names[found[1]] = label(found[2])
        elif found := re.fullmatch(r"    (n\d+)-- (\w+) --> (n\d+)", line):
            edges.add((channel, names[found[1]], found[2], names[found[3]]))
    return edges


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
print(f"{len(packages)} packages, {sum(map(len, expected.values()))} edges")
