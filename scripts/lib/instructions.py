"""Prints the instructions that callgrind counted, in millions, without those of sha256.

    instructions.py DUMP PROGRAM DIVISOR

A processor has instructions for sha256, valgrind has none: what replaces them would be half of the sum. The program has its symbols,
but callgrind writes addresses, because it does not read what lld links.
"""
import bisect, re, subprocess, sys

dump, program, divisor = sys.argv[1:]
symbols = sorted((int(address, 16), name) for address, _, name in (
    line.split(" ", 2) for line in subprocess.check_output(["nm", program], text=True).splitlines() if not line.startswith(" ")))
starts = [address for address, _ in symbols]


def name(function):
    address = re.match("0x([0-9a-f]+)", function)
    return symbols[bisect.bisect(starts, int(address[1], 16)) - 1][1] if address else function


names, total, counts, inclusive = {}, 0, True, False
for line in open(dump):
    if line.startswith("fn="):
        number, function = re.match(r"fn=(\(\d+\)) ?(.*)", line).groups()
        function = names.setdefault(number, function)
        counts = "sha256_block_data_order" not in name(function)
    elif match := re.match(r"cfn=(\(\d+\)) (.*)", line):
        names[match[1]] = match[2]
    elif line.startswith("calls="):
        inclusive = True
    elif re.match(r"[\d+*-]", line):
        if counts and not inclusive:
            total += int(line.split()[1])
        inclusive = False
print(f"{total / int(divisor) / 1e6:.4f}")
