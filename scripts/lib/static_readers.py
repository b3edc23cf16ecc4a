"""Clients of static trees while states are published: `static_readers.py STATE STOP REPORT FRONT...`.

STATE is a file with the number of the last state that was written, STOP a file that ends the run. A FRONT is a URL with the
catalog `up`, whose package `tick` has the number of its state in its description; `+` before it says that it has images.
REPORT is a file for the number of reads of each front, and for what was wrong."""

import hashlib
import json
import os
import sys
import threading
import time
import urllib.request
import zlib

INDEX = "application/vnd.oci.image.index.v1+json"


class Reader(threading.Thread):
    def __init__(self, front, state, stop):
        super().__init__()
        self.url, self.has_images = front.removeprefix("+"), front.startswith("+")
        self.state, self.stop_file = state, stop
        self.reads, self.wrong = 0, []

    def run(self):
        while not os.path.exists(self.stop_file):
            for read in [self.package, self.pointer] + [self.image] * self.has_images:
                try:
                    read()
                except Exception as error:  # Each failure is a finding.
                    self.wrong.append(f"{read.__name__}: {error!r}"[:300])
                self.reads += 1
            time.sleep(0.05)

    def get(self, path, gzip=False):
        request = urllib.request.Request(f"{self.url}/{path}", headers={"Accept-Encoding": "gzip"} if gzip else {})
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
            length = answer.headers["Content-Length"]
            assert length is None or int(length) == len(body), f"{path} is torn"
            # A bucket has one coding, whatever is asked for. An object is named by the hash of its stored bytes.
            if path.startswith("catalogs/") and answer.headers["Content-Encoding"] == "gzip":
                body = zlib.decompress(body, wbits=31)
            return body, answer.headers["Content-Type"]

    def named(self, path, digest):
        body, media_type = self.get(path)
        assert hashlib.sha256(body).hexdigest() == digest, f"{path} has other bytes"
        return body, media_type

    def package(self):
        with open(self.state) as file:
            written = int(file.read() or 0)
        for gzip in False, True:
            lines = [json.loads(line) for line in self.get("catalogs/up/packages/tick", gzip)[0].splitlines()]
            found = int(next(line["description"] for line in lines if line["schema"] == "olm.package"))
            assert found >= written, f"state {found} after {written}"

    def pointer(self):
        current = json.loads(self.get("catalogs/up/current.json")[0])
        for key in [current["snapshot"]["key"], *(form["key"] for form in current["all"].values())]:
            self.named(key, key.split("/")[-1].split(".")[0])

    def image(self):
        body, media_type = self.get("v2/up/manifests/latest")
        assert media_type == INDEX, media_type
        for platform in json.loads(body)["manifests"][:2]:
            digest = platform["digest"]
            body, media_type = self.named(f"v2/up/manifests/{digest}", digest.split(":")[1])
            assert media_type == platform["mediaType"], media_type
            manifest = json.loads(body)
            for blob in [manifest["config"], *manifest["layers"]]:
                self.named(f"v2/up/blobs/{blob['digest']}", blob["digest"].split(":")[1])


def main(state, stop, report, *fronts):
    readers = [Reader(front, state, stop) for front in fronts]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    with open(report, "w") as file:
        for reader in readers:
            json.dump({"front": reader.url, "reads": reader.reads, "wrong": reader.wrong[:10]}, file)
            file.write("\n")


main(*sys.argv[1:])
