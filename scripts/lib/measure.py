"""Runs a command several times and prints the medians: wall ms, CPU ms, peak resident MB.

    measure.py RUNS PREPARE COMMAND...      PREPARE is a shell command before each run; it is not measured
"""
import os, statistics, subprocess, sys, time

runs, prepare, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
rows = []
for _ in range(runs):
    subprocess.run(prepare, shell=True, check=True)
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    rows.append(((time.monotonic() - begin) * 1000, (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss / 1024))
    # An old binary ends with 10 where it published something; scripts/bench compares old and new ones.
    if os.waitstatus_to_exitcode(status) not in (0, 10):
        sys.exit(f"{command[0]} failed with {os.waitstatus_to_exitcode(status)}")
print(*(f"{statistics.median(column):.2f}" for column in zip(*rows)))
