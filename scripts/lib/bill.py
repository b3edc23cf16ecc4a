"""Compares what was counted with what scripts/cost counts with: `bill.py FOLDER POINTER [real]`.

FOLDER has a file of requests (counting.py) for each kind of work, and `updates`: for each update the number of changed packages and that of all.
POINTER is the last `current.json`. Of real updates the bytes are compared too. Prints a line for each number, as the checks do.
"""

import collections
import importlib.machinery
import importlib.util
import json
import pathlib
import sys

folder, pointer, is_real = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text()), "real" in sys.argv
loader = importlib.machinery.SourceFileLoader("cost", str(pathlib.Path(__file__).parent.parent / "cost"))
cost = importlib.util.module_from_spec(importlib.util.spec_from_loader("cost", loader))
loader.exec_module(cost)


def counted(name):
    """Requests by class as buckets bill them, and bytes. A process asks once what the bucket can do, which is left out."""
    classes = collections.Counter()
    for line in (folder / name).read_text().splitlines():
        method, path, _, received, sent = line.split()
        if path.split("?")[0].endswith("/.conditional-writes"):
            continue
        kind = "lists" if "list-type" in path else "gets" if method in ("GET", "HEAD") else "puts"
        classes.update({kind: 1, "received": int(received), "sent": int(sent)})
    return classes


def compare(text, found, expected, below=0.0, above=0.0):
    """`below` and `above` are by how much what was counted may differ: some updates change no more than the lines."""
    fits = expected - below - 0.01 <= found <= expected + above + 0.01
    print(f"{'ok' if fits else 'not ok'} {text}: {found:.3g} counted, {expected:.3g} in scripts/cost")


rows = [list(map(int, line.split())) for line in (folder / "updates").read_text().splitlines()]
updates, changed, packages = len(rows), sum(row[0] for row in rows), sum(row[1] for row in rows)
publications, settled, tree, collect = (counted(name) for name in ("publication", "status", "tree", "collect"))
state = rows[-1][1] + cost.STATE_OBJECTS
writes = publications["puts"] + settled["puts"] - changed
compare("writes of a publication and its status, beside changed packages", writes / updates, cost.POLL_PUTS, below=1)
compare("reads of a publication, beside packages", (publications["gets"] - packages) / updates, cost.POLL_GETS, below=1, above=2)
compare("reads of a poll without news and of an hourly check, beside packages", counted("idle")["gets"] - state, cost.IDLE_GETS)
compare("writes of it", counted("idle")["puts"], 0)
compare("writes of a tree after an update, beside changed packages", (tree["puts"] - 2 * changed) / updates, cost.TREE_PUTS, below=3)
compare("writes of a tree without news", counted("tree-idle")["puts"], 0)
compare("reads of a collection, beside those of states and of a catalog", collect["gets"] - len(pointer["previous"]) - 1 - 2, cost.COLLECT_GETS, below=1)
lines = [line.split() for line in (folder / "publication").read_text().splitlines()]
stored = {path for method, path, *_ in lines if method == "PUT" and "/sha256/" in path}
compare("lists of a collection, beside one for 1,000 objects", collect["lists"] - len(stored) // 1000, cost.COLLECT_LISTS, below=1)
copied = counted("copy")["sent"] / updates / 1e6
if is_real:
    compare("MB of a copy after an update", copied, cost.COPY_MB, below=0.01, above=0.01)
    for coding, share in ("zstd", cost.ZSTD), ("gzip", cost.GZIP):
        compare(f"share of the lines as {coding}", pointer["all"][coding]["size"] / pointer["size"], share, below=0.01, above=0.01)
sent = publications["received"] / updates / 1e6
print(f"# {updates} updates: the poller wrote {sent:.3f} MB for each, the tree took {tree['received'] / updates / 1e6:.3f}, a copy read {copied:.3f}")
