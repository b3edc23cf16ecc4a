"""Catalogs of scripts/chaos: good ones, whose updates have a known content, and hostile ones that must not do harm."""

import contextlib
import http.server
import json
import os
import random
import shutil
import subprocess
import tarfile
import threading
import time
from pathlib import Path

import worst_inputs
from chaos_images import LAYER, MANIFEST, Layer, Series, descriptor, image, push, sha256, write_layout
from decoded import copies

# Every so many updates a catalog returns to an old content that retention does not keep any more.
# So publications need objects that are just being condemned or deleted.
RETURNS = 5
# Bytes a second of the registry of row 23. Under 1 KiB a body is broken off after 30 seconds; above it a layer takes as long as it
# takes, and nobody waits for it.
DRIP = 2048
# Name of a package that would clear a terminal: row 22. Names that are a path, a command, or the name of another file.
ODD = "chaos\x1b[2J"
STRANGE = ["etcd/x", "../etcd", "etcd;touch made", "kafka$(touch made)", "search.json"]
# What costs most to compose: package `a` requires the others. In turn, each of this many bytes.
REQUIREMENTS = [worst_inputs.ranges, worst_inputs.required, worst_inputs.chained, worst_inputs.any_of, worst_inputs.apis]
REQUIREMENTS_SIZE = 500_000


class Good:
    def __init__(self, number, settings, series):
        self.name, self.number, self.settings, self.series = f"good-{number:02}", number, settings, series
        self.layout = Path(settings["work"]) / "layouts" / self.name
        registry = [None, settings["direct"], settings["slow"], settings["failing"]][number % 4]
        self.source = f"{registry}/chaos/{self.name}:now" if registry else f"oci:{self.layout}"
        self.content = {"source": self.source}
        # Content hash to its last update, and the time at which each update was there to be pulled.
        self.known, self.published, self.contents = {}, [], []

    def update(self):
        at = len(self.published)
        content = self.contents[at + 1 - RETURNS] if at and at % RETURNS == 0 else at
        self.contents.append(content)
        state, marker = 2 * self.number + content, self.marker(content)
        # Known before it can be served.
        self.known[self.content_hash(state, marker)] = at
        manifest, blobs = image([self.series.layer(state), Layer({"configs/chaos/catalog.json": marker})])
        if self.source.startswith("oci:"):
            write_layout(self.layout, manifest, blobs)
        else:
            push(self.settings["direct"], f"chaos/{self.name}", manifest, blobs)
        self.published.append(time.time())

    def marker(self, content):
        """A package by which all contents of all catalogs differ, with control characters for row 22; packages with strange names; and
        one whose deflated bytes look like the borders between packages."""
        lines = [{"schema": "olm.package", "name": ODD},
                 {"schema": "olm.bundle", "package": ODD, "name": f"chaos.v{content}", "image": f"{self.name}\nforged"}]
        lines += [{"schema": "olm.package", "name": name} for name in STRANGE]
        text = copies(random.Random(f"{self.name} {content // 2}"), 60_000)
        lines += [{"schema": "olm.package", "name": "borders"}, {"schema": "x", "package": "borders", "t": text}]
        return "\n".join(map(json.dumps, lines)).encode()

    def content_hash(self, state, marker):
        folder = Path(self.settings["work"]) / "render"
        shutil.rmtree(folder, ignore_errors=True)
        self.series.lay_out(state, folder)
        (folder / "chaos").mkdir()
        (folder / "chaos/catalog.json").write_bytes(marker)
        return rendered(self.settings["program"], folder)

    def superseded(self, content_hash):
        """The time at which the update after the last one of this content was there; None if it is the newest one."""
        after = self.known[content_hash] + 1
        return self.published[after] if after < len(self.published) else None


def rendered(program, folder):
    return sha256(subprocess.run([program, "render", f"dir:{folder}"], check=True, capture_output=True).stdout)


class Hostile:
    """One catalog for each row of the findings; `build(number)` gives the image of the update of that number."""

    def __init__(self, row, settings):
        self.name, self.build = f"hostile-{row}", getattr(self, f"row_{row}", None)
        self.folder = Path(settings["work"]) / "layouts" / self.name
        self.folder.mkdir(parents=True)
        self.source, self.layers, self.updates = f"oci:{self.folder}", {}, 0
        if row == 18:
            # A file in place of a folder was taken for an empty catalog.
            (self.folder / "catalog.json").write_text('{"schema":"olm.package","name":"p"}')
            self.source = f"dir:{self.folder}/catalog.json"
        if row == 23:
            self.source = f"{settings['drip']}/chaos/drip:now"
        self.content = {"source": self.source}
        if row == "requirements":
            packages = [{"name": "a"}, {"name": "refused"}]
            inputs = [{"source": self.source, "select": {"packages": packages}}]
            self.content = {"compose": {"inputs": inputs, "dependencies": "include"}}
        if row == "inputs":
            inputs = [{"source": f"oci:{self.folder.parent}/hostile-{other}"} for other in (16, 17, 24)]
            self.content = {"compose": {"inputs": inputs, "conflicts": "first"}}

    def update(self):
        if self.build and self.name == "hostile-23":
            manifest, blobs, _ = self.build(self.updates)
            Drip.contents |= {f"sha256:{sha256(content)}": content for content in [manifest, *blobs]}
            Drip.contents["now"] = manifest
        elif self.build:
            manifest, blobs, entry = self.build(self.updates)
            write_layout(self.folder, manifest, blobs, **entry)
        self.updates += 1

    def of(self, number, files, kinds={}, **changes):
        """An image with these files, kept by their paths and sizes, and with one that differs by the number."""
        key = tuple((path, len(content)) for path, content in files.items())
        self.layers[key] = self.layers.get(key) or Layer(files, kinds)
        return *image([self.layers[key], Layer({"configs/number/catalog.json": b'{"n":%d}' % number})], **changes), {}

    def row_16(self, number):
        """Documents that take many times their size of memory: two above the limit, one below."""
        kinds = [(b"{},", b"<<: [", 60 << 20), (b"1,", b"x: &a [", 60 << 20), (b"1,", b"x: &a [", 31 << 20)]
        part, start, size = kinds[number % 3]
        return self.of(number, {"configs/catalog.yaml": start + part * (size // len(part)) + b"]"})

    def row_17(self, number):
        """Too many patterns, or too many comparisons of them."""
        deep = f"configs/{'aaaaaaaa/' * 60}"
        ignored = b"b\n" * 32000 if number % 2 else b"*a*a*a*a*b\n" * 900
        files = {f"{deep}{name}.json": b'{"a":1}' for name in range(1000)}
        return self.of(number, {"configs/.indexignore": ignored, **files})

    def row_19(self, number):
        """A global header behind the description of a file: readers disagree about the name of the file."""
        record = b"22 path=configs/other\n"
        files = {"x": record, "g": b"13 comment=a\n", "configs/p.json": b'{"schema":"olm.package","name":"p"}'}
        return self.of(number, files, {"x": tarfile.XHDTYPE, "g": tarfile.XGLTYPE})

    def row_20(self, number):
        """Text for terminals and logs in fields that errors repeat."""
        config = descriptor("application/x-\x1b[31m", b"{}")
        return self.of(number, {}, artifactType="a secret\x1b[2J\nERROR forged line", config=config)

    def row_21(self, number):
        """A layer that is a FIFO: to open it waits for ever."""
        manifest, blobs, entry = self.of(number, {})
        fifo = self.folder / "blobs/sha256" / sha256(blobs.pop())
        fifo.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(fifo)
        return manifest, blobs, entry

    def row_23(self, number):
        """Manifests and layers that come so slowly that a pull would never end."""
        return self.of(number, {"configs/noise.json": b'{"a":"' + os.urandom(9 << 20).hex().encode() + b'"}'})

    def row_24(self, number):
        """Descriptors and manifests that mean nothing, or two things."""
        changes = [{"schemaVersion": 3}, {"manifests": []}, {}, {}][number % 4]
        entry = [{}, {}, {"size": -5}, {"mediaType": LAYER}][number % 4]
        return *self.of(number, {"configs/p.json": b'{"schema":"olm.package","name":"p"}'}, **changes)[:2], entry

    def row_requirements(self, number):
        """What a composition takes along with much work, and with a package for which the whole is refused at its end."""
        of = REQUIREMENTS[number % len(REQUIREMENTS)]
        refused = worst_inputs.one_bundle("refused", relatedImages=[{"name": "", "image": "NO IMAGE"}])
        files = {f"configs/{of.__name__}.json": worst_inputs.lines(of(REQUIREMENTS_SIZE)),
                 "configs/refused.json": worst_inputs.lines(refused)}
        return self.of(number, files)


class Drip(http.server.BaseHTTPRequestHandler):
    """A registry whose bodies come slowly: row 23. `contents` has manifests by tag and blobs by digest."""

    contents, protocol_version = {}, "HTTP/1.1"

    def do_GET(self):
        content = self.contents.get(self.path.rpartition("/")[2], b"")
        self.send_response(200 if content else 404)
        self.send_header("content-type", MANIFEST)
        self.send_header("docker-content-digest", f"sha256:{sha256(content)}")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(OSError):
            for at in range(0, len(content) if self.command == "GET" else 0, DRIP):
                self.wfile.write(content[at:at + DRIP])
                time.sleep(1 if len(content) > DRIP else 0)

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


def start_drip():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Drip)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"


def make(settings):
    """The good catalogs and the hostile ones. Row 22 is a package of each good one."""
    series = Series(settings["series"], settings["work"])
    settings["drip"] = start_drip()
    return ([Good(number, settings, series) for number in range(20)],
            [Hostile(row, settings) for row in (16, 17, 18, 19, 20, 21, 23, 24, "requirements", "inputs")])
