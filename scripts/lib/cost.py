"""Measures one command on a worst input of 1, 4 and 16 MB, and prints CPU seconds, those of the
system not counted, and peak MB of each.

    cost.py PROGRAM WORK COMMAND INPUT [SELECTION]

COMMAND is poll, images, search, diff, compose or explain; the last two take the packages SELECTION with all they require. Fails
if the command does, if its CPU time grows by more than five for four times the input, or if it takes too much memory.
"""
import os, pathlib, shutil, subprocess, sys

MIB = 1 << 20
# What is above four is for n log n, and for caches that no longer fit.
GROWTH_MAX = 5
# Shorter times count as this many seconds: the start of the process is a large part of them.
FLOOR = 0.3
# What takes longer than this many seconds has no cost in proportion to its input, or a bad one.
SECONDS_MAX = 200
# Of a process with the default limits, as functions/catalog-mirror/CONFIGURATION.md says, in MB.
MEMORY_MAX = 512
QUERY = "feature kindz a1b2c3word package zzzzzz aword"

program, work, command, name = sys.argv[1:5]
work = pathlib.Path(work)
store = work / "store"


def input_folder(size):
    folder = work / "inputs" / f"{name}-{size}"
    if not folder.exists():
        generator = pathlib.Path(__file__).with_name("worst_inputs.py")
        subprocess.run([sys.executable, "-B", generator, name, folder, str(size)], check=True)
    return folder


def poll(folder):
    return ["poll", "--store", store, "--catalog", f"c=dir:{folder}"]


def arguments(folder):
    if command in ("compose", "explain"):
        file = work / "compose.yaml"
        file.write_text(f'dependencies: include\ninputs:\n- {{source: "dir:{folder}", select: {{packages: {sys.argv[5]}}}}}\n')
        return ["compose", *(["--explain"] if command == "explain" else []), file]
    return {
        "poll": poll(folder),
        "images": ["images", "--store", store, "c"],
        "search": ["search", "--store", store, QUERY],
        "diff": ["diff", "--json", f"dir:{folder}/old", f"dir:{folder}/new"],
    }[command]


def measure(arguments):
    """CPU seconds and peak MB. The exit code 10 stands for differences."""
    with open(work / "said", "w+b") as said:
        process = subprocess.Popen(["timeout", str(SECONDS_MAX), program, *arguments], stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        if code not in (0, 10):
            said.seek(0)
            sys.exit(f"{title()} ends with {code}: {said.read().decode()[-500:]}")
    # Without the time of the system: on many file systems that of an `fsync` grows with the files that lie there.
    return usage.ru_utime, usage.ru_maxrss / 1024


def prepared(folder):
    """Measures once, in a new store."""
    shutil.rmtree(store, ignore_errors=True)
    if command in ("images", "search"):
        measure(poll(folder))
    return measure(arguments(folder))


def title():
    return f"{command} of {name}"


def main():
    figures, allowed = [], None
    for size in (MIB, 4 * MIB, 16 * MIB):
        folder = input_folder(size)
        seconds, peak = prepared(folder)
        # A busy machine only adds: what is over the limit is measured again.
        for _ in range(2):
            if allowed and seconds > allowed:
                seconds = min(seconds, prepared(folder)[0])
        figures.append(f"{size // MIB} MB {seconds:.2f} s {peak:.0f} MB")
        text = f"{title()}: {', '.join(figures)}"
        if allowed and seconds > allowed:
            sys.exit(f"{text}: more than {allowed:.2f} s of CPU")
        if peak > MEMORY_MAX:
            sys.exit(f"{text}: more than {MEMORY_MAX} MB of memory")
        allowed = GROWTH_MAX * max(seconds, FLOOR)
    print(text)


main()
