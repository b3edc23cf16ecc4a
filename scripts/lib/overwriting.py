"""Passes every request on without its conditions: `overwriting.py PORT HOST:PORT`."""

from s3_proxy import Proxy, serve

CONDITIONS = {"if-match", "if-none-match"}


class Overwriting(Proxy):
    def answer(self):
        self.give(*self.ask(self.body(), CONDITIONS if self.command == "PUT" else set()))


serve(Overwriting)
