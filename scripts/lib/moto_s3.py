"""moto_server as an S3 that can be relied on: `moto_s3.py [OPTION...]`.

It answers one request after the other. moto checks the condition of a write and then writes, so that of two writers at
the same time both may win, which S3 rules out."""

import sys
import threading

import moto.server

run_simple = moto.server.run_simple


def one_by_one(host, port, app, **options):
    lock = threading.Lock()

    def locked(environ, start_response):
        with lock:
            return list(app(environ, start_response))

    run_simple(host, port, locked, **options)


moto.server.run_simple = one_by_one
moto.server.main(sys.argv[1:])
