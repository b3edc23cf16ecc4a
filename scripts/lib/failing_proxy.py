"""Passes requests on to a server, one in so many with a fault: `failing_proxy.py PORT HOST:PORT ONE-IN SEED`.

A fault is an answer 503, before or after the request was done, or a connection that is cut while the request is done.
"""

import random
import sys

from s3_proxy import Proxy, serve


class Failing(Proxy):
    def answer(self):
        fault = random.choice(["refuse", "lose", "cut"]) if random.randrange(int(sys.argv[3])) == 0 else None
        if fault == "refuse":
            return self.send_error(503)
        done = self.ask(self.body())
        if fault == "lose":
            return self.send_error(503)
        if fault == "cut":
            self.close_connection = True
            return None
        return self.give(*done)


random.seed(sys.argv[4])
serve(Failing)
