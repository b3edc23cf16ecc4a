"""Decodes every object of the published state of a catalog with programs of others, and compares what they hold.

    decoded.py STORE NAME [FOLDER]              one state; FOLDER is where umoci may unpack its image
    decoded.py random PROGRAM FOLDER COUNT SEED [ONE-IN]
                                                publishes so many random updates, and decodes each state

gunzip, Python's gzip and zlib, and zstd decode what is compressed; Python's tarfile and umoci read the layer. Of random updates one in so
many (default: 10) is copied, unpacked by umoci, and compared with what the program renders. Prints `ok` or `not ok`, as the checks do.
"""

import collections
import gzip
import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

from worst_inputs import lines, one_bundle

# Characters of texts that hardly compress, and words of texts that do.
NOISE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
WORDS = ["operator", "cluster", "the", "of", "database", "kafka", "storage", "\u00e9t\u00e9", "\u65e5\u672c", "a", "installs", "and", "upgrades"]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def run(*command, data=b""):
    done = subprocess.run(command, input=data, capture_output=True)
    if done.returncode:
        raise ValueError(f"{command[0]} says: {done.stderr.decode(errors='replace').strip()[:300]}")
    return done.stdout


def inflated(data):
    """What three decoders make of a gzip file, if it is the same."""
    whole = zlib.decompressobj(wbits=31)
    by_zlib = whole.decompress(data) + whole.flush()
    if not whole.eof or whole.unused_data:
        raise ValueError("zlib finds no end, or something behind it")
    if gzip.decompress(data) != by_zlib or run("gunzip", "-c", data=data) != by_zlib:
        raise ValueError("zlib, gzip and gunzip differ")
    return by_zlib


class State:
    """The published state of a catalog. What a store has had before, in `known` by key, is not decoded again: its bytes have a hash."""

    def __init__(self, store, name, known):
        self.store, self.known, self.counts = Path(store), known, collections.Counter()
        self.pointer = json.loads((self.store / f"catalogs/{name}/current.json").read_bytes())
        self.snapshot = json.loads(self.plain(self.pointer["snapshot"]["key"]))

    def stored(self, key):
        data = (self.store / key).read_bytes()
        if sha256(data) != key.rsplit("/", 1)[1].split(".")[0]:
            raise ValueError(f"{key} is not what its name says")
        return data

    def plain(self, key):
        """The bytes of an object without its coding, and their hash in `known`."""
        data = self.stored(key)
        plain = inflated(data) if key.endswith(".gz") else run("zstd", "-qdc", data=data) if key.endswith(".zst") else data
        self.known[key] = sha256(plain)
        self.counts["decoded"] += 1
        return plain

    def hash(self, key):
        if key not in self.known:
            self.plain(key)
        return self.known[key]

    def check(self):
        """Fails if one object is not what the state says."""
        content, all = self.snapshot["contentHash"], self.snapshot["all"]
        keys = [f"all/sha256/{all[coding]['sha256']}.json{end}" for coding, end in (("gzip", ".gz"), ("zstd", ".zst"), ("identity", "")) if coding in all]
        for key in keys:
            self.equal(key, self.hash(key), content)
        shards = [self.snapshot["global"]] if "global" in self.snapshot else []
        for shard in [*shards, *self.snapshot["packages"]]:
            key = f"packages/sha256/{shard['sha256']}.json.zst"
            self.equal(key, self.hash(key), shard["lines"]["sha256"])
        documents = [("indexes", self.snapshot["index"]), *(("facts", facts) for facts in self.snapshot.get("facts", {}).values())]
        for folder, named in documents:
            key = f"{folder}/sha256/{named['sha256']}.json.zst"
            if key not in self.known:
                self.plain(key)
        self.check_image(content)

    def equal(self, what, found, expected):
        if found != expected:
            raise ValueError(f"{what} holds {found} and not {expected}")

    def check_image(self, content):
        image = self.snapshot["image"]
        blob = lambda named: f"blobs/sha256/{named['sha256']}"
        for named in [image["index"], *image["manifests"], *image["configs"]]:
            json.loads(self.stored(blob(named)))
        key = blob(image["layer"])
        layer = inflated(self.stored(key))
        self.equal(f"the layer {key}", sha256(layer), image["diffId"])
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
        self.equal(f"the files of {key}", sha256(joined(files)), content)

    def check_with_umoci(self, folder):
        """umoci reads the blobs as a layout, and writes the files."""
        layout, files = Path(folder, "layout"), Path(folder, "files")
        for old in (layout, files):
            shutil.rmtree(old, ignore_errors=True)
        layout.mkdir(parents=True)
        (layout / "blobs").symlink_to((self.store / "blobs").resolve())
        (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        manifest = self.snapshot["image"]["manifests"][0]
        (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
            {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": f"sha256:{manifest['sha256']}", "size": manifest["size"],
             "annotations": {"org.opencontainers.image.ref.name": "v1"}}]}))
        run("umoci", "unpack", "--rootless", "--image", f"{layout}:v1", str(files))
        root = files / "rootfs"
        found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        self.equal("what umoci unpacks", sha256(joined(found)), self.snapshot["contentHash"])


def joined(files):
    """The lines of the catalog: those of files in the order of their folders, of which the one without a package is the first."""
    folders = {Path(name).parent.name: data for name, data in files.items()}
    return b"".join(folders[name] for name in sorted(folders, key=lambda name: (name != "%", name.encode())))


def copies(chance, size):
    """Noise with matches at the distances whose codes have only zeros or only ones, which deflated bytes that look like a border need."""
    made = chance.choices(NOISE, k=26000)
    while len(made) < size:
        start = len(made) - chance.choice((1537, 4097, 8193, 16385, 24576, 24577, 32768))
        made += made[max(start, 0):][: chance.randint(3, 42)]
        made += chance.choices(NOISE, k=chance.randint(1, 14))
    return "".join(made[:size])


def text(chance, size):
    if size > 26000 and chance.random() < 0.5:
        return copies(chance, size)
    if chance.random() < 0.5:
        return "".join(chance.choices(NOISE, k=size))
    piece = chance.choice(WORDS) + " "
    return (piece * (size // len(piece) + 1) if chance.random() < 0.2 else " ".join(chance.choices(WORDS, k=size // 6 + 1)))[:size]


def package(chance, name):
    """A package with texts of sizes about the borders of blocks and windows, some of them the same as before."""
    documents = list(one_bundle(name, version=f"1.{chance.randrange(1000)}.0"))
    for number in range(chance.choice((0, 1, 1, 2, 5))):
        size = chance.choice((chance.randrange(300), chance.randrange(20000), 32768 + chance.randrange(-40, 40), 65535 + chance.randrange(-40, 40)))
        documents.append({"schema": "x", "package": name, "name": f"{name}.{number}", "t": text(chance, size)})
    return lines(documents)


class Updates:
    """A folder of packages, which changes at random."""

    def __init__(self, program, folder, seed):
        self.program, self.folder, self.chance = program, Path(folder), random.Random(seed)
        self.files = self.folder / "files"
        self.totals, self.known = collections.Counter(), {"store": {}, "copy": {}}
        self.change(4)

    def change(self, count):
        names = [f"p{number}" for number in range(12)]
        for name in self.chance.sample(names, count):
            folder = self.files / name
            # Something stays.
            if folder.exists() and self.chance.random() < 0.2 and len(list(self.files.iterdir())) > 3:
                shutil.rmtree(folder)
                continue
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "catalog.json").write_bytes(package(self.chance, name))

    def update(self, is_whole):
        """Publishes, and decodes the state; with `is_whole` its copy and its image too."""
        store, copy = self.folder / "store", self.folder / "copy"
        # Many packages of a small catalog may go at once.
        run(self.program, "poll", "--store", str(store), "--catalog", f"up=dir:{self.files}", "--force")
        self.decode(store)
        if not is_whole:
            return
        run(self.program, "sync", str(store), str(copy))
        copied = self.decode(copy)
        copied.check_with_umoci(self.folder / "umoci")
        rendered = sha256(run(self.program, "render", str(self.files)))
        copied.equal("the copy", copied.snapshot["contentHash"], rendered)
        self.totals.update(copies=1)

    def decode(self, store):
        state = State(store, "up", self.known[store.name])
        state.check()
        self.totals.update(states=1, **state.counts)
        return state


def random_updates(program, folder, count, seed, one_in="10"):
    updates, failed = Updates(program, folder, seed), 0
    for number in range(1, int(count) + 1):
        updates.change(updates.chance.choice((1, 1, 1, 2, 3)))
        try:
            updates.update(number % int(one_in) == 0)
        except (ValueError, OSError, zlib.error, tarfile.TarError) as error:
            failed += 1
            # At once: a run that is stopped has said what it found.
            print(f"# update {number} of seed {seed}: {error}", flush=True)
    totals = ", ".join(f"{value} {name}" for name, value in updates.totals.items())
    print(f"{'not ok' if failed else 'ok'} {count} random updates of seed {seed} are decoded by others: {totals}")


def main(arguments):
    if arguments[0] == "random":
        return random_updates(*arguments[1:])
    store, name, *folder = arguments
    state = State(store, name, {})
    state.check()
    if folder:
        state.check_with_umoci(folder[0])
    print(f"{state.counts['decoded']} objects")


if __name__ == "__main__":
    main(sys.argv[1:])
