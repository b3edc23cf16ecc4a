"""Changes ClusterCatalogs and reads them as operator-controller does: it waits for the status, follows status.urls.base over TLS with the
authority of the cluster, and compares what it read with the image that it gave. Each read goes to the next replica, as by a Service.

    reader.py API API-CA CA REPLICAS REFS CATALOGS UPDATES

REPLICAS names a file with the addresses of the ready replicas, one a line, which is read again for each read. REFS names a file with
lines `REF SHA256`: an image and the hash of its content. So many catalogs change at a time, each so many times. Prints one object of JSON.
"""

import gzip
import hashlib
import http.client
import itertools
import json
import socket
import ssl
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

# Seconds for which a replica may serve the image before, until its watch brings the status.
STALE_MAX = 5
# Seconds until a status must name the image, and until a read must be answered.
NAMED_MAX, READ_MAX = 120, 60
BROKEN = (OSError, http.client.HTTPException)


class Reader:
    """What all catalogs have in common."""

    def __init__(self, api, api_authority, authority, replicas, refs):
        self.api, self.replicas = urlsplit(api).netloc, Path(replicas)
        self.api_trust, self.trust = (ssl.create_default_context(cafile=file) for file in (api_authority, authority))
        self.images = [line.split() for line in Path(refs).read_text().splitlines()]
        self.turn, self.lock, self.waits, self.notes = itertools.count(), threading.Lock(), [], []
        self.figures = dict.fromkeys(("reads", "wrong", "failed", "retried", "late", "stale", "broken"), 0)

    def count(self, figure, *note):
        with self.lock:
            self.figures[figure] += 1
            self.notes.extend(note)

    def addresses(self):
        return self.replicas.read_text().split()

    def get(self, url):
        """Status, fields and content from the next replica, over a new connection."""
        addresses = self.addresses()
        host, port = addresses[next(self.turn) % len(addresses)].split(":")
        connection = http.client.HTTPSConnection(url.hostname)
        with socket.create_connection((host, int(port)), READ_MAX) as plain:
            connection.sock = self.trust.wrap_socket(plain, server_hostname=url.hostname)
            connection.request("GET", url.path, headers={"accept-encoding": "gzip", "connection": "close"})
            answer = connection.getresponse()
            content = answer.read()
        return answer, gzip.decompress(content) if answer.getheader("content-encoding") == "gzip" else content

    def read(self, base):
        """The hash of the content. Tries again where an answer asks for that, and after a connection that broke, as operator-controller does."""
        url, end = urlsplit(base + "/api/v1/all"), time.monotonic() + READ_MAX
        while True:
            late = time.monotonic() > end
            try:
                answer, content = self.get(url)
            except BROKEN:
                if late:
                    raise
                self.count("broken")
            else:
                if answer.status == 200:
                    return hashlib.sha256(content).hexdigest()
                if answer.status != 503 or not answer.getheader("retry-after") or late:
                    raise OSError(f"the answer is {answer.status}")
                self.count("retried")
            time.sleep(1)


class Catalog(threading.Thread):
    """One ClusterCatalog, which gets one image after the other. After each change of its status it is read from as many replicas as there are."""

    def __init__(self, reader, number, updates):
        super().__init__(name=f"changing-{number}")
        self.reader, self.number, self.updates = reader, number, updates
        self.connection = http.client.HTTPSConnection(reader.api, context=reader.api_trust, timeout=30)

    def ask(self, method, body=None):
        path = f"/apis/olm.operatorframework.io/v1/clustercatalogs/{self.name}"
        fields = {"authorization": "Bearer administrator", "content-type": "application/merge-patch+json"}
        try:
            self.connection.request(method, path, body, fields)
            answer = self.connection.getresponse()
            text = answer.read()
        except BROKEN:
            self.connection.close()
            raise
        if answer.status != 200:
            raise OSError(f"{answer.status}: {text}")
        return json.loads(text)

    def base(self, ref):
        """The URL once the status names the image."""
        end = time.monotonic() + NAMED_MAX
        while time.monotonic() < end:
            try:
                status = self.ask("GET").get("status", {})
            except BROKEN:
                status = {}
            if status.get("resolvedSource", {}).get("image", {}).get("ref") == ref:
                return status["urls"]["base"]
            time.sleep(0.05)
        return None

    def run(self):
        before = None
        for update in range(self.updates):
            ref, content = self.reader.images[(self.number + update) % len(self.reader.images)]
            began = time.monotonic()
            try:
                self.ask("PATCH", json.dumps({"spec": {"source": {"image": {"ref": ref}}}}))
            except BROKEN as error:
                self.reader.count("failed", f"{self.name}: {error}")
                continue
            base = self.base(ref)
            if not base:
                self.reader.count("late", f"{self.name}: no status names {ref} after {NAMED_MAX} s")
                continue
            self.reader.waits.append(round((time.monotonic() - began) * 1000))
            self.read_all(base, ref, content, before)
            before = content

    def read_all(self, base, ref, content, before):
        """What a replica serves before its watch brings the status is stale, and not wrong. Before the first update any image may be there."""
        named = time.monotonic()
        for _ in self.reader.addresses():
            try:
                while (found := self.reader.read(base)) != content and before in (None, found) and time.monotonic() - named < STALE_MAX:
                    self.reader.count("stale")
                    time.sleep(0.1)
            except BROKEN as error:
                self.reader.count("failed", f"{self.name}: {error}")
                continue
            finally:
                self.reader.count("reads")
            if found != content:
                self.reader.count("wrong", f"{self.name}: {ref} has the content of another image")


def main(*arguments):
    reader = Reader(*arguments[:5])
    count, updates = map(int, arguments[5:])
    catalogs = [Catalog(reader, number, updates) for number in range(count)]
    for catalog in catalogs:
        catalog.start()
    for catalog in catalogs:
        catalog.join()
    waits = sorted(reader.waits) or [0]
    times = {"medianMs": waits[len(waits) // 2], "p99Ms": waits[len(waits) * 99 // 100], "maxMs": waits[-1]}
    print(json.dumps({"updates": len(reader.waits), **reader.figures, **times, "notes": reader.notes[:10]}))


main(*sys.argv[1:])
