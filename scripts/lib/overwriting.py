"""Passes every request on without its conditions: `overwriting.py PORT HOST:PORT`."""

import http.client
import http.server
import sys

CONDITIONS = {"if-match", "if-none-match"}
HOP = {"connection", "transfer-encoding", "date", "server"}


class Overwriting(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        conditions = CONDITIONS if self.command == "PUT" else set()
        headers = {name: value for name, value in self.headers.items() if name.lower() not in conditions | HOP}
        server = http.client.HTTPConnection(sys.argv[2])
        server.request(self.command, self.path, body, headers)
        answer = server.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP | {"content-length"}:
                self.send_header(name, value)
        is_head = self.command == "HEAD"
        self.send_header("content-length", answer.getheader("content-length", "0") if is_head else str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Overwriting).serve_forever()
