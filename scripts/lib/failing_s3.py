"""Passes requests on to an S3 server, one in so many with a fault: `failing_s3.py PORT HOST:PORT ONE-IN`.

A fault is an answer 503 or 409 without the request being done, a 412 for a write, a 503 although it was done, or a
connection that is cut while the request is done.
"""

import http.client
import http.server
import random
import sys

HOP = {"connection", "transfer-encoding", "date", "server"}


class Failing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        fault = random.randrange(5) if random.randrange(int(sys.argv[3])) == 0 else None
        if fault == 0:
            return self.refuse(503, "SlowDown")
        if fault == 1 and self.command == "PUT":
            return self.refuse(409, "ConditionalRequestConflict")
        if fault == 2 and self.command == "PUT" and "if-none-match" in self.headers:
            return self.refuse(412, "PreconditionFailed")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        server = http.client.HTTPConnection(sys.argv[2])
        server.request(self.command, self.path, body, headers)
        answer = server.getresponse()
        content = answer.read()
        if fault == 3:
            return self.refuse(503, "InternalError")
        if fault == 4:
            self.close_connection = True
            return None
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP | {"content-length"}:
                self.send_header(name, value)
        is_head = self.command == "HEAD"
        self.send_header("content-length", answer.getheader("content-length", "0") if is_head else str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status, code):
        body = b"" if self.command == "HEAD" else f"<Error><Code>{code}</Code></Error>".encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Failing).serve_forever()
