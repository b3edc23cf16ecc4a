"""Measures one command on a worst input of 1, 4 and 16 times a size, and prints what each costs.

    cost.py PROGRAM WORK COMMAND INPUT [SELECTION]

COMMAND is poll, images, search, diff, compose or explain; the last two take the packages SELECTION with all they require. Their
inputs have 1, 4 and 16 MB, and the cost is in CPU seconds, those of the system not counted, and peak MB.

COMMAND is also upgrade, graph, plan or bundle, which read one package of a store. SELECTION is the version, the format, or the
operators: one as `PACKAGE VERSION CHANNEL`, or `all` for one of each bundle. Their inputs have 0.25, 1 and 4 MB, and the cost is in
instructions, which a busy machine does not change.

Fails if the command does, if its cost grows by more than five for four times the input, or if it takes too much memory.
"""
import json, os, pathlib, re, shutil, subprocess, sys

MIB = 1 << 20
# What is above four is for n log n, and for caches that no longer fit.
GROWTH_MAX = 5
# Shorter times count as this many seconds: the start of the process is a large part of them.
FLOOR = 0.3
# The same for instructions, in millions.
FLOOR_INSTRUCTIONS = 30
# What takes longer than this many seconds has no cost in proportion to its input, or a bad one.
SECONDS_MAX = 200
# Of a process with the default limits, as functions/catalog-mirror/CONFIGURATION.md says, in MB.
MEMORY_MAX = 512
QUERY = "feature kindz a1b2c3word package zzzzzz aword"
# Commands about one package, and the size of their smallest input.
COUNTED = ("upgrade", "graph", "plan", "bundle")
COUNTED_BYTES = MIB // 4

program, work, command, name, *selection = sys.argv[1:]
selection = selection[0] if selection else ""
work = pathlib.Path(work)
store = work / "store"


def input_folder(size):
    folder = work / "inputs" / f"{name}-{size}"
    if not folder.exists():
        generator = pathlib.Path(__file__).with_name("worst_inputs.py")
        subprocess.run([sys.executable, "-B", generator, name, folder, str(size)], check=True)
    return folder


def poll(folder):
    """An input of two parts becomes two catalogs."""
    now, then = (folder / "old", folder / "new") if (folder / "old").exists() else (folder, folder)
    return ["poll", "--store", store, "--catalog", f"c=dir:{now}", "--catalog", f"then=dir:{then}"]


def operators(folder):
    """The installed operators as a file."""
    file = work / "installed"
    text = selection + "\n"
    if selection == "all":
        bundles = filter(lambda meta: meta["schema"] == "olm.bundle", map(json.loads, open(folder / "catalog.json")))
        text = "".join(f"{meta['package']} {meta['properties'][0]['value']['version']} s\n" for meta in bundles)
    file.write_text(text)
    return file


def arguments(folder):
    if command in ("compose", "explain"):
        file = work / "compose.yaml"
        file.write_text(f'dependencies: include\ninputs:\n- {{source: "dir:{folder}", select: {{packages: {selection}}}}}\n')
        return ["compose", *(["--explain"] if command == "explain" else []), file]
    return {
        "poll": lambda: poll(folder)[:5],
        "images": lambda: ["images", "--store", store, "c"],
        "search": lambda: ["search", "--store", store, QUERY],
        "diff": lambda: ["diff", "--json", f"dir:{folder}/old", f"dir:{folder}/new"],
        "upgrade": lambda: ["upgrade", "--store", store, "c", "p", selection],
        "graph": lambda: ["graph", "--store", store, "c", "p", "--format", selection],
        "plan": lambda: ["plan", "--store", store, "--from", "c", "--to", "then", operators(folder)],
        "bundle": lambda: ["bundle", "diff", "--store", store, "c", "p", "1.0.0", "1.0.1"],
    }[command]()


def measure(arguments, codes=(0, 10), prefix=()):
    """CPU seconds, peak MB, and what was said. The exit code 10 stands for differences."""
    with open(work / "said", "w+b") as said:
        process = subprocess.Popen(
            ["timeout", str(SECONDS_MAX), *prefix, program, *arguments], stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode()
        if code not in codes:
            sys.exit(f"{title()} ends with {code}: {text[-500:]}")
    # Without the time of the system: on many file systems that of an `fsync` grows with the files that lie there.
    return usage.ru_utime, usage.ru_maxrss / 1024, text


def seconds(folder):
    """Measures once, in a new store."""
    shutil.rmtree(store, ignore_errors=True)
    if command in ("images", "search"):
        measure(poll(folder)[:5])
    return measure(arguments(folder))[:2]


def instructions(folder):
    """Counts the instructions of the command, in millions. Its exit code 1 stands for a version without a way."""
    shutil.rmtree(store, ignore_errors=True)
    measure(poll(folder))
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--trace-children=yes"]
    *_, said = measure(arguments(folder), codes=(0, 1), prefix=valgrind)
    # The program starts itself again; the last count is that of the work.
    counts = re.findall(r"I\s+refs:\s+([\d,]+)", said)
    errors = [line for line in said.splitlines() if line.startswith("error")]
    if errors or not counts:
        sys.exit(f"{title()} fails: {errors or said[-500:]}")
    return int(counts[-1].replace(",", "")) / 1e6


def title():
    return f"{command} {selection} of {name}" if command in COUNTED else f"{command} of {name}"


def check_growth(costs):
    """`costs` has a size, its cost, a text about it, and whether a busy machine may be the reason."""
    figures, allowed = [], None
    for size, cost, words, repeat, floor in costs:
        # A busy machine only adds: what is over the limit is measured again.
        for _ in range(2 if repeat else 0):
            if allowed and cost > allowed:
                cost = min(cost, repeat())
        figures.append(f"{size / MIB:g} MB {words(cost)}")
        text = f"{title()}: {', '.join(figures)}"
        if allowed and cost > allowed:
            sys.exit(f"{text}: more than {allowed:.2f}")
        allowed = GROWTH_MAX * max(cost, floor)
    print(text)


def timed():
    for size in (MIB, 4 * MIB, 16 * MIB):
        folder = input_folder(size)
        cost, peak = seconds(folder)
        if peak > MEMORY_MAX:
            sys.exit(f"{title()}, {size // MIB} MB: {peak:.0f} MB of memory, more than {MEMORY_MAX}")
        yield size, cost, lambda cost: f"{cost:.2f} s {peak:.0f} MB", lambda: seconds(folder)[0], FLOOR


def counted():
    for size in (COUNTED_BYTES, 4 * COUNTED_BYTES, 16 * COUNTED_BYTES):
        yield size, instructions(input_folder(size)), lambda cost: f"{cost:.0f} M instructions", None, FLOOR_INSTRUCTIONS


check_growth(counted() if command in COUNTED else timed())
