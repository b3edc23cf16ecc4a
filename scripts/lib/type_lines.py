"""Types lines into an interactive program on a terminal, as a person does, and prints what the terminal showed.

usage: type_lines.py PROGRAM [ARGUMENT...] < LINES

Each line of standard input is typed, with \\t for Tab, and Enter after it. The next one is typed when the program has been quiet.
"""

import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from fcntl import ioctl

# Seconds without output after which the program waits for a key, and for which it may work at most.
QUIET, PATIENCE = 0.7, 20
ROWS, COLUMNS = 50, 200


def show_until_quiet(terminal):
    """Prints what the terminal shows until nothing comes any more. Returns false when the program has ended."""
    end, shown = time.monotonic() + PATIENCE, False
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], QUIET if shown else 3 * QUIET)
        if not ready:
            return True
        try:
            output = os.read(terminal, 65536)
        except OSError:
            return False
        if not output:
            return False
        shown = True
        answer_queries(terminal, output)
        sys.stdout.buffer.write(output)
        sys.stdout.buffer.flush()
    return True


def answer_queries(terminal, output):
    """Answers as a terminal where the cursor is and what it can do: some shells wait for that."""
    if b"\x1b[6n" in output:
        os.write(terminal, b"\x1b[1;1R")
    if b"\x1b[c" in output or b"\x1b[0c" in output:
        os.write(terminal, b"\x1b[?6c")


def main():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    goes_on = show_until_quiet(terminal)
    for line in sys.stdin:
        # A key at a time: what comes at once is pasted, and a Tab in it is only a character.
        for key in line.rstrip("\n").replace("\\t", "\t") + "\r":
            if not goes_on:
                break
            os.write(terminal, key.encode())
            if key in "\t\r":
                goes_on = show_until_quiet(terminal)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


main()
