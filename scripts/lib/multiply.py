"""Copies the packages of a catalog under new names until they hold about so many bytes.

    multiply.py SOURCE TARGET BYTES

A copy's names lie far from the original's in byte order, so that no compressor's window spans both.
"""
import pathlib, re, sys

source, target, wanted = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
written, copy = 0, 0
while written < wanted:
    copy += 1
    before = written
    for file in sorted(source.glob("*/catalog.*")):
        # One package of the real catalog is a fifth of it: the last copy goes without what would be too much.
        if written + file.stat().st_size > wanted * 1.005:
            continue
        old = file.parent.name
        new = f"c{copy}-{old}"
        text = file.read_bytes()
        pattern = rb'("(?:name|package|packageName)": *)"%s"' % re.escape(old.encode())
        text = re.sub(pattern, rb'\g<1>"%s"' % new.encode(), text)
        (target / new).mkdir(parents=True)
        (target / new / file.name).write_bytes(text)
        written += len(text)
    if written == before:
        break
