"""Passes requests on to a server and counts them: `counting.py PORT HOST:PORT FILE`.

Each request is a line of the file: method, path with the names of its query, status, bytes of the request's content and of the answer's.
"""

import re
import sys

from s3_proxy import Proxy, serve


class Counting(Proxy):
    def answer(self):
        body = self.body()
        answer, content = self.ask(body)
        path, _, query = self.path.partition("?")
        query = "&".join(sorted(re.sub("=.*", "", part) for part in query.split("&") if part != "x-id"))
        # One write, so that lines of two threads do not mix.
        COUNTED.write(f"{self.command} {path}{'?' + query if query else ''} {answer.status} {len(body)} {len(content)}\n")
        self.give(answer, content)


COUNTED = open(sys.argv[3], "a", buffering=1)
serve(Counting)
