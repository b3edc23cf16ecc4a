"""The processes of scripts/chaos: for each of two sites a mirror, its copy, and collections of both stores."""

import http.client
import json
import os
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
import zlib
from pathlib import Path

import decoded
import unread
from ports import free_port

INTERVAL = 30
# Connections of one attack by clients that do not read, and the answers that those of a protocol ask for.
UNREAD = {"h2": (10, unread.STREAMS), "h1": (100, unread.PIPELINED)}
# Steps of our own clock at a restart, in seconds. Half of the restarts keep it.
CLOCKS = [0, 0, 3600, -3600]
POLLS = re.compile(r'catalog_mirror_polls_total{(.*)} (\d+)')


class Site:
    """Two stores of one kind, and the processes that use them."""

    def __init__(self, name, settings, chaos):
        self.name, self.settings, self.chaos = name, settings, chaos
        self.work = Path(settings["work"]) / name
        self.stores = [f"s3://chaos/{part}" if name == "s3" else str(self.work / part) for part in ("mirror", "copy")]
        self.full = self.work / "is-full"
        self.mounted = settings["mounted"] if name == "s3" else ""
        # Full disks and kills, as pairs of times; and what the metrics of the process that runs said last.
        self.harms, self.polls, self.deleted = [], {}, {}
        self.running, self.is_full, self.processes, self.lock = [], False, {}, threading.RLock()
        self.address = f"127.0.0.1:{free_port()}"
        self.write_config()
        options = ["--s3-path-style"] if name == "s3" else []
        place = ["--config", str(self.work / "catalogs.yaml"), "--store", self.stores[0], *options]
        self.commands = {
            "serve": ["serve", *place, "--listen", self.address],
            "sync": ["sync", "--watch", f"{INTERVAL}s", f"http://{self.address}", self.stores[1], *options],
            "poll": ["poll", *place],
        }
        for store, kind in zip(self.stores, ("gc", "gc-copy")):
            # Kept for an hour, which is a minute of the fast clock.
            keep = ["--keep-generations", "2", "--grace", "1h"]
            self.commands[kind] = ["gc", "--json", "--store", store, *keep, *options]
        self.options = options

    def write_config(self):
        hosts = [self.settings[name] for name in ("direct", "slow", "failing", "drip")]
        catalogs = self.chaos.good + self.chaos.hostile
        catalogs = [{"name": catalog.name, **catalog.content} for catalog in catalogs]
        # States that a mirror missed while it was down, and those on the way back, would look like accidents.
        config = {"interval": f"{INTERVAL}s", "hold": "off", "registries": {"plainHttp": hosts}, "catalogs": catalogs}
        (self.work / "catalogs.yaml").write_text(json.dumps(config))

    def run(self, name, offset=0, command=None, **more):
        """Starts a command with a clock that is wrong by `offset` seconds."""
        preload = [self.settings["full"]] if not self.mounted else []
        environment = {**os.environ, "FULL_DISK": str(self.full), "TMPDIR": str(self.work / "spool")}
        if offset:
            # The kernel waits by the monotonic clock, and dates files by its own.
            preload.append(self.settings["faketime"])
            environment |= {"FAKETIME": f"{offset:+}", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
            self.chaos.count("clockSteps")
        environment["LD_PRELOAD"] = ":".join(preload)
        with self.lock, open(self.work / f"{name}.log", "ab") as log:
            command = [self.settings["program"], *(command or self.commands[name])]
            process = subprocess.Popen(command, env=environment, stderr=log, **{"stdout": log} | more)
            self.running = [process, *(other for other in self.running if other.poll() is None)]
        return process

    def start(self):
        for name in ("serve", "sync"):
            self.processes[name] = self.run(name)

    def kill(self, name, chance):
        """Kills a process and starts it again; a second poller and a collection are started for it."""
        offset, wait = chance.choice(CLOCKS), chance.uniform(0, 3 if name == "poll" else 0.3)
        if name in ("gc", "poll"):
            process = self.run(name, offset)
            time.sleep(wait)
        with self.lock:
            process = process if name in ("gc", "poll") else self.processes[name]
            was_running = process.poll() is None
            process.kill()
            process.wait()
            if name in self.processes:
                self.processes[name] = self.run(name, offset)
        if was_running:
            self.chaos.count("kills")
            if name in ("serve", "poll"):
                self.harms.append((time.time(), time.time()))

    def fill(self, seconds, stop):
        begin, self.is_full = time.time(), True
        ballast = Path(self.mounted) / "ballast"
        if self.mounted:
            subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=4k"], stderr=subprocess.DEVNULL)
        else:
            self.full.touch()
        stop.wait(seconds)
        (ballast if self.mounted else self.full).unlink()
        self.harms.append((begin, time.time()))
        self.is_full = False

    def is_full_since(self, begin):
        return self.is_full or any(end > begin for start, end in self.harms if end > start)

    def disturbance(self, since):
        """Number of polls that what was done to this site since then can have cost."""
        harms = [end - start for start, end in self.harms if end > since]
        return len(harms) + sum(harms) / INTERVAL + self.is_full

    def collect(self, chance):
        for store, kind in zip(self.stores, ("gc", "gc-copy")):
            # A folder is a store once the first catalog was written to it.
            if self.name == "folder" and not (Path(store) / "catalogs.json").exists():
                continue
            begin = time.time()
            process = self.run(kind, chance.choice(CLOCKS), stdout=subprocess.PIPE)
            output = process.communicate()[0]
            if process.returncode == 0:
                self.count_collection(kind, json.loads(output))
            elif not self.is_full_since(begin):
                self.chaos.fail(f"{self.name}: {kind} ends with {process.returncode}: {last_line(self.work / kind)}")

    def count_collection(self, kind, report):
        self.deleted[kind] = self.deleted.get(kind, 0) + report["deleted"]["objects"]
        # A publication that waits for the end of a round may end it as well.
        if report["step"] in ("finish", "condemn") and self.deleted.pop(kind):
            self.chaos.count("collections")

    def check_processes(self):
        with self.lock:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    last = last_line(self.work / name)
                    self.chaos.fail(f"{self.name}: {name} ended with {process.returncode}: {last}")
                    self.processes[name] = self.run(name)
                found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
                peaks, name = self.chaos.figures["peakMemoryMiB"], f"{self.name} {name}"
                peaks[name] = max(peaks.get(name, 0), int(found[1]) >> 10 if found else 0)

    def read_metrics(self):
        """Adds up the polls of hostile catalogs that were refused; a new process counts from 0."""
        try:
            text = self.get("metrics")[1].decode()
        except OSError:
            return
        for labels, number in POLLS.findall(text):
            if "hostile" in labels and re.search('outcome="(failed|refused)"', labels):
                before, self.polls[labels] = self.polls.get(labels, 0), int(number)
                self.chaos.count("refusedPolls", int(number) - (before if before <= int(number) else 0))

    def leave_unread(self, chance, path, stop):
        """Asks for many answers, and reads none of them for some seconds."""
        protocol, coding = chance.choice(list(UNREAD)), chance.choice(["identity", "gzip", "zstd"])
        connections, answers = UNREAD[protocol]
        held = []
        try:
            for _ in range(connections):
                held.append(unread.unread(int(self.address.rpartition(":")[2]), protocol, path, coding))
                self.chaos.count("unread", answers)
            stop.wait(chance.uniform(2, 10))
        finally:
            for connection in held:
                connection.close()

    def get(self, path, coding="identity"):
        """Status and body of an answer. A process that is not there is an OSError."""
        request = urllib.request.Request(f"http://{self.address}/{path}", headers={"accept-encoding": coding})
        asked = self.processes["serve"]
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read()
        except http.client.IncompleteRead as error:
            with self.lock:
                # A process that still runs must send the whole body.
                if self.processes["serve"] is asked:
                    raise
            raise ConnectionError("the process was killed while it sent a body") from error
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def status(self, name):
        code, body = self.get(f"catalogs/{name}/status.json")
        return json.loads(body) if code == 200 else {}

    def end(self):
        """Waits for the last updates, ends all processes, collects all garbage, and verifies both stores."""
        last = time.time() + 4 * INTERVAL + 20
        while (late := [good.name for good in self.chaos.good if not self.is_newest(good)]) and time.time() < last:
            time.sleep(1)
        if late:
            self.chaos.fail(f"{self.name}: the last updates of {late} are never served")
        self.must("last-sync", [part for part in self.commands["sync"] if part not in ("--watch", f"{INTERVAL}s")])
        for name, process in self.processes.items():
            process.terminate()
            if process.wait() != 0:
                self.chaos.fail(f"{self.name}: {name} ends with {process.returncode} after SIGTERM")
        for store, kind in zip(self.stores, ("gc", "gc-copy")):
            place = ["--store", store, *self.options]
            self.must("verify", ["verify", *place])
            self.must(kind, [*self.commands[kind], "--offline"])
            self.must("verify", ["verify", *place])
            if self.name == "folder":
                self.decode(store)
            self.check_listing(store, json.loads(self.must("ls", ["ls", "--json", *place]) or "[]"))
            # Row 22: the name of an image has a line feed, and the name of its package would clear a terminal.
            printed = self.must("images", ["images", *place])
            if not printed.replace("\n", "").isprintable() or "\nforged" in printed:
                self.chaos.fail(f"{self.name}: `images` prints control characters")

    def check_listing(self, store, rows):
        """Counts the publications of the mirror; the copy must have the newest contents as well."""
        published = {row["name"]: row["current"] for row in rows if row["current"]}
        if set(published) != {good.name for good in self.chaos.good}:
            self.chaos.fail(f"{store} has the catalogs {sorted(published)}")
        for good in self.chaos.good:
            current = published.get(good.name) or {"contentHash": None, "serial": 0}
            if good.known.get(current["contentHash"]) != len(good.published) - 1:
                self.chaos.fail(f"{store} does not have the last update of {good.name}")
            self.chaos.count("publications", current["serial"] if store == self.stores[0] else 0)

    def decode(self, store):
        """Has other programs decode every object of the published states."""
        known = {}
        for good in self.chaos.good:
            try:
                decoded.State(store, good.name, known).check()
            except (OSError, ValueError, zlib.error) as error:
                self.chaos.fail(f"{store}: {good.name} is not decoded by others: {error}")

    def must(self, name, command):
        """Runs a program to its end, which must be a success, and returns what it prints."""
        process = self.run(name, command=command, stdout=subprocess.PIPE, text=True)
        output = process.communicate()[0]
        if process.returncode:
            said = output.strip().rpartition("\n")[2][:300], last_line(self.work / name)
            self.chaos.fail(f"{self.name}: {command} ends with {process.returncode}: {said}")
        return output

    def is_newest(self, good):
        try:
            served = self.get(f"catalogs/{good.name}/content-hash")[1].decode().strip()
        except OSError:
            return False
        return good.known.get(served) == len(good.published) - 1

    def kill_all(self):
        for process in self.running:
            process.kill()


def last_line(path):
    return Path(f"{path}.log").read_text().strip().rpartition("\n")[2][:500]
