"""moto_server as an S3 that can be relied on: `moto_s3.py [--clock FILE] [OPTION...]`.

It answers one request after the other. moto checks the condition of a write and then writes, so that of two writers at
the same time both may win, which S3 rules out.

With a clock it dates objects by one that is wrong by as many seconds as a file says, which is read anew for each object: so
a test can have old objects without waiting for days."""

import datetime
import sys
import threading

import moto.s3.models
import moto.server
from moto.core.utils import utcnow

run_simple = moto.server.run_simple


def one_by_one(host, port, app, **options):
    lock = threading.Lock()

    def locked(environ, start_response):
        with lock:
            return list(app(environ, start_response))

    run_simple(host, port, locked, **options)


def turned():
    with open(CLOCK) as file:
        return utcnow() + datetime.timedelta(seconds=float(file.read()))


options = sys.argv[1:]
if options[:1] == ["--clock"]:
    CLOCK = options[1]
    moto.s3.models.utcnow = turned
    options = options[2:]
moto.server.run_simple = one_by_one
moto.server.main(options)
