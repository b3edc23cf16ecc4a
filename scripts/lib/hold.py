"""Opens connections and says nothing on them: hold.py HOST PORT COUNT SECONDS"""

import socket
import sys
import time

host, port, count, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
held = [socket.create_connection((host, port)) for _ in range(count)]
print(len(held), flush=True)
time.sleep(seconds)
