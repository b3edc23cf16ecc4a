"""Passes requests on to an S3 server, one in so many with a fault: `failing_s3.py PORT HOST:PORT ONE-IN [SEED]`.

A fault is an answer 503 or 409 without the request being done, a 412 for a write, a 503 although it was done, or a
connection that is cut while the request is done.
"""

import random
import sys

from s3_proxy import Proxy, serve


class Failing(Proxy):
    def answer(self):
        body = self.body()
        fault = random.randrange(5) if random.randrange(int(sys.argv[3])) == 0 else None
        if fault == 0:
            return self.refuse(503, "SlowDown")
        if fault == 1 and self.command == "PUT":
            return self.refuse(409, "ConditionalRequestConflict")
        if fault == 2 and self.command == "PUT" and "if-none-match" in self.headers:
            return self.refuse(412, "PreconditionFailed")
        done = self.ask(body)
        if fault == 3:
            return self.refuse(503, "InternalError")
        if fault == 4:
            self.close_connection = True
            return None
        return self.give(*done)

    def refuse(self, status, code):
        body = b"" if self.command == "HEAD" else f"<Error><Code>{code}</Code></Error>".encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


random.seed(sys.argv[4] if len(sys.argv) > 4 else None)
serve(Failing)
