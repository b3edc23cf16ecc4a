"""Prints a port for a server on loopback: one that nothing listens on now, below those that the kernel gives to clients.

Each is given once in a run, because its parts ask for ports before they listen. PORTS in the environment names the file with the
last one.
"""

import fcntl
import os
import socket


def free_port():
    with open(os.environ["PORTS"], "r+") as last:
        fcntl.flock(last, fcntl.LOCK_EX)
        port = int(last.read())
        while True:
            port += 1
            try:
                socket.create_server(("127.0.0.1", port)).close()
                break
            except OSError:
                pass
        last.seek(0)
        last.write(str(port))
    return port


if __name__ == "__main__":
    print(free_port())
