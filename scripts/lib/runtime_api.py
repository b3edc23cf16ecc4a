"""Plays the Lambda service to a function and prints medians: milliseconds from exec to the first `next`, milliseconds of
one more event once the function is warm, its peak resident MB, and the CPU milliseconds of all its events.

    runtime_api.py STARTS PROGRAM [EVENT-FILE EVENTS [WARM-UP [ANSWER]]]      the environment is the function's

WARM-UP events come before those that count (default: 5); the first ones fill caches and open connections. More of them come until
one has the answer ANSWER, at most 40 in all: a slow machine works off in several events what a fast one does in the first. After
them, an answer without that text is a failure.
"""
import http.server, os, statistics, subprocess, sys, threading, time

starts, program = int(sys.argv[1]), sys.argv[2]
event = open(sys.argv[3], "rb").read() if len(sys.argv) > 3 else b""
events = int(sys.argv[4]) if len(sys.argv) > 4 else 0
warm_up = int(sys.argv[5]) if len(sys.argv) > 5 else 5
expected = sys.argv[6].encode() if len(sys.argv) > 6 else b""
WARM_UP_MAX = 40


class Service(http.server.BaseHTTPRequestHandler):
    """One function's side of the Runtime API ("Using the Lambda runtime API for custom runtimes")."""

    protocol_version = "HTTP/1.1"
    # Else the end of an event waits 40 ms for the acknowledgement of its beginning.
    disable_nagle_algorithm = True

    def do_GET(self):
        run = self.server.run
        if run.first_next is None:
            run.first_next = time.perf_counter()
        if len(run.times) >= run.warm_up + run.events:
            run.done.set()
            return time.sleep(3600)
        self.send_response(200)
        self.send_header("lambda-runtime-aws-request-id", str(len(run.times)))
        self.send_header("lambda-runtime-deadline-ms", str(int(time.time() * 1000) + 60000))
        self.send_header("content-length", str(len(event)))
        self.end_headers()
        run.sent = time.perf_counter()
        self.wfile.write(event)

    def do_POST(self):
        run = self.server.run
        run.times.append(time.perf_counter() - run.sent)
        body = self.rfile.read(int(self.headers.get("content-length") or 0)) or self.drain()
        has_expected = expected in body
        if len(run.times) == run.warm_up < WARM_UP_MAX and not has_expected:
            run.warm_up += 1
        is_warm_up = len(run.times) <= run.warm_up
        is_answer = self.path.endswith("/response") and (is_warm_up or has_expected)
        run.failed = run.failed or not is_answer
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()

    def drain(self):
        body = b""
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            body += self.rfile.read(size + 2)[:-2]
        self.rfile.readline()
        return body

    def log_message(self, *_):
        pass


class Run:
    """One life of the function."""

    def __init__(self, warm_up, events):
        self.warm_up, self.events, self.times, self.failed = warm_up, events, [], False
        self.first_next, self.sent, self.done = None, 0.0, threading.Event()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        server.daemon_threads, server.run = True, self
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        env = dict(os.environ, AWS_LAMBDA_RUNTIME_API="127.0.0.1:%d" % server.server_port)
        begin = time.perf_counter()
        process = subprocess.Popen([program], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not self.done.wait(0.05):
            pass
        if not self.done.is_set() or self.failed:
            sys.exit(f"{program} does not answer its events")
        self.cold = self.first_next - begin
        process.kill()
        _, _, usage = os.wait4(process.pid, 0)
        self.peak, self.cpu = usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime
        server.shutdown()


cold = statistics.median(Run(0, 0).cold for _ in range(starts))
warm = Run(warm_up, events) if events else Run(0, 0)
own = statistics.median(warm.times[warm.warm_up:]) if events else 0.0
print(f"{cold * 1000:.2f} {own * 1000:.3f} {warm.peak:.1f} {warm.cpu * 1000:.0f}")
