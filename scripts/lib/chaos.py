"""Runs, harms and checks the mirrors of scripts/chaos: `chaos.py SETTINGS REPORT`. The table goes to WORK/table."""

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

import chaos_catalogs
import decoded
from chaos_mirrors import INTERVAL, Site

# A poll on the slow registry, and the poll of all others that start with it.
SLOW = 15
# An outage or a kill can cost the poll that would have been in time: the next one is an interval and its jitter later.
NEXT_POLL = 1.1 * INTERVAL + 5
# Of the process with the default limits and all these catalogs, in MiB.
MEMORY_MAX = 512
# In 30 minutes.
NEEDED = {"kills": 50, "publications": 300, "collections": 5, "unread": 20_000}
# What clients that do not read ask of a good catalog.
UNREAD = ["all.json", "api/v1/metas?schema=olm.bundle", "packages", "search?q=a&limit=100", "packages/borders"]


class Chaos:
    def __init__(self, settings):
        self.settings, self.seconds = settings, settings["minutes"] * 60
        self.failures, self.stop, self.lock = [], threading.Event(), threading.Lock()
        self.good, self.hostile = chaos_catalogs.make(settings)
        self.sites = [Site(name, settings, self) for name in ("s3", "folder")]
        self.figures = dict.fromkeys(("kills", "publications", "collections", "refusedPolls", "deferred", "givenUp", "unread",
                                      "bodies", "hashes", "storeSteps", "clockSteps", "fullDisks"), 0)
        self.figures |= {"longestStaleness": 0.0, "peakMemoryMiB": {}}

    def count(self, figure, number=1):
        with self.lock:
            self.figures[figure] += number

    def fail(self, text):
        with self.lock:
            if len(self.failures) < 50 and text not in self.failures:
                self.failures.append(text)
                print(time.strftime("%X"), text, file=sys.stderr, flush=True)

    def random(self, name):
        """Choices of one thread: those of the others do not change them."""
        return random.Random(f"{self.settings['seed']} {name}")

    def keep(self, name, period, work):
        """Calls `work` with its random numbers after each wait; `period` is a pair of seconds."""
        def loop():
            chance = self.random(name)
            while not self.stop.wait(chance.uniform(*period)):
                try:
                    work(chance)
                except Exception:
                    self.fail(f"{name}: {traceback.format_exc()}")
        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        return thread

    def update(self, _):
        for catalog in self.good + self.hostile:
            if not self.stop.is_set():
                catalog.update()

    def kill(self, chance):
        site, name = chance.choice(self.sites), chance.choice(["serve", "sync", "gc", "poll", "serve", "sync"])
        site.kill(name, chance)

    def harm(self, chance):
        """A full disk of either site, or a step of an hour of the store's clock, forth and back in turn."""
        if chance.random() < 0.7:
            chance.choice(self.sites).fill(chance.uniform(5, 15), self.stop)
            self.count("fullDisks")
        else:
            offset = 0 if self.figures["storeSteps"] % 2 else chance.choice([-3600, 3600])
            with open(self.settings["clock"], "a") as file:
                file.write(f"{time.time()} {offset}\n")
            self.count("storeSteps")

    def leave_unread(self, chance):
        site, path = chance.choice(self.sites), f"/catalogs/{chance.choice(self.good).name}/{chance.choice(UNREAD)}"
        # A process that was killed, or that closes connections to make room.
        with contextlib.suppress(OSError):
            site.leave_unread(chance, path, self.stop)

    def check(self, chance):
        for site in self.sites:
            site.check_processes()
            with contextlib.suppress(OSError):
                for catalog in self.good:
                    self.check_good(site, catalog)
                self.check_body(site, chance.choice(self.good), chance.choice(["identity", "gzip"]))
                self.check_hostile(site, chance.choice(self.hostile))

    def check_good(self, site, catalog):
        asked = time.time()
        status, served = site.get(f"catalogs/{catalog.name}/content-hash")
        if status == 503:
            return
        newer = catalog.published[0] if status == 404 else None
        if status == 200:
            served = served.decode().strip()
            self.count("hashes")
            if served not in catalog.known:
                return self.fail(f"{site.name} serves {served} as {catalog.name}, which nobody published")
            newer = catalog.superseded(served)
        elif status != 404:
            return self.fail(f"{site.name} answers {status} for {catalog.name}")
        if not newer:
            return
        stale = asked - newer
        self.figures["longestStaleness"] = max(self.figures["longestStaleness"], stale)
        if stale > 2 * INTERVAL + SLOW + site.disturbance(newer) * NEXT_POLL and not self.is_excused(site, catalog):
            self.fail(f"{site.name}: {catalog.name} is stale for {stale:.0f} s; {site.status(catalog.name)}")

    def is_excused(self, site, catalog):
        """True for two documented delays: a deferred publication, a revision under which two processes were killed."""
        error = site.status(catalog.name).get("error") or ""
        texts = {"deferred": "deferred: garbage collection", "givenUp": "failed for good: the process died"}
        for figure, text in texts.items():
            if text in error:
                self.count(figure)
                return True
        return False

    def check_body(self, site, catalog, coding):
        before = site.get(f"catalogs/{catalog.name}/content-hash")
        status, body = site.get(f"catalogs/{catalog.name}/all.json", coding)
        after = site.get(f"catalogs/{catalog.name}/content-hash")
        if {before[0], status, after[0]} == {200}:
            found = decoded.sha256(body if coding == "identity" else decoded.inflated(body))
            self.count("bodies")
            if found not in catalog.known or found not in (before[1].decode().strip(), after[1].decode().strip()):
                self.fail(f"{site.name}: the body of {catalog.name} has the hash {found}")

    def check_hostile(self, site, catalog):
        if site.get(f"catalogs/{catalog.name}/content-hash")[0] not in (404, 503):
            self.fail(f"{site.name} serves {catalog.name}")
        status = site.status(catalog.name)
        error = status.get("error") or ""
        if not error.isprintable():
            self.fail(f"{site.name}: the error of {catalog.name} has control characters")
        # The first poll of the slow drip ends after a minute.
        if time.time() - self.began > 120 and not error and "openPulls" not in status:
            self.fail(f"{site.name}: {catalog.name} has no error: {status}")

    def run(self):
        self.update(None)
        self.began = time.time()
        for site in self.sites:
            site.start()
        threads = [self.keep("updates", (60, 60), self.update), self.keep("kills", (8, 20), self.kill),
                   self.keep("harm", (15, 30), self.harm), self.keep("unread", (8, 20), self.leave_unread), self.keep("checks", (3, 3), self.check),
                   self.keep("metrics", (2, 2), lambda _: [site.read_metrics() for site in self.sites])]
        threads += [self.keep(f"gc {site.name}", (INTERVAL, INTERVAL), site.collect) for site in self.sites]
        self.stop.wait(self.seconds)
        self.stop.set()
        for thread in threads:
            thread.join()
        # A revision under which two processes were killed is never pulled again, so each catalog gets another one.
        for catalog in self.good:
            catalog.update()
        for site in self.sites:
            site.end()
        self.judge()

    def judge(self):
        for figure, number in NEEDED.items():
            if self.figures[figure] < int(number * self.seconds / 1800):
                self.fail(f"only {self.figures[figure]} {figure}, which is too little for {self.seconds:.0f} s")
        for name, mebibytes in self.figures["peakMemoryMiB"].items():
            if mebibytes > MEMORY_MAX:
                self.fail(f"{name} took {mebibytes} MiB")

    def report(self, file):
        report = {"seed": self.settings["seed"], "seconds": self.seconds, **self.figures, "failures": self.failures}
        Path(file).write_text(json.dumps(report, indent=2) + "\n")
        with open(f"{self.settings['work']}/table", "w") as table:
            for name, value in report.items():
                if name != "failures":
                    print(f"{name:18} {value if not isinstance(value, float) else round(value, 1)}", file=table)
            print(*(f"FAILED {failure}" for failure in self.failures), sep="\n", file=table)


def main(settings, report):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chaos = Chaos(json.loads(Path(settings).read_text()))
    try:
        chaos.run()
        chaos.report(report)
    finally:
        chaos.stop.set()
        for site in chaos.sites:
            site.kill_all()
    os._exit(1 if chaos.failures else 0)


main(*sys.argv[1:])
