"""What proxies before an S3 server have in common: they pass requests on, each its own way."""

import http.client
import http.server
import sys

HOP = {"connection", "transfer-encoding", "date", "server"}


class Proxy(http.server.BaseHTTPRequestHandler):
    """Passes every request on to HOST:PORT, the second argument of the program; others override `answer`."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        self.give(*self.ask(self.body()))

    def body(self):
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def ask(self, body, without=frozenset()):
        """The server's answer to the request without these fields, and the content of the answer."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP | without}
        server = http.client.HTTPConnection(sys.argv[2])
        server.request(self.command, self.path, body, headers)
        answer = server.getresponse()
        return answer, answer.read()

    def give(self, answer, content):
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP | {"content-length"}:
                self.send_header(name, value)
        is_head = self.command == "HEAD"
        self.send_header("content-length", answer.getheader("content-length", "0") if is_head else str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        self.answer()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, *arguments):
        pass


def serve(proxy):
    """On the port that the first argument of the program names, until it is killed."""
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), proxy).serve_forever()
