"""Images of catalogs, as OCI layouts and in a registry, and the series of updates."""

import collections
import gzip
import hashlib
import http.client
import io
import json
import os
import tarfile
from pathlib import Path

MANIFEST, CONFIG = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
ROOT = {"operators.operatorframework.io.index.configs.v1": "/configs"}
# Largest catalog in bytes: 20 of them are pulled each minute by two pollers of a machine that does other work.
LARGEST = 1_500_000


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Layer:
    """A layer of these files; `kinds` gives the tar types of entries that are no files."""

    def __init__(self, files, kinds={}):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path, content in files.items():
                entry = tarfile.TarInfo(path)
                entry.size, entry.type = len(content), kinds.get(path, tarfile.REGTYPE)
                tar.addfile(entry, io.BytesIO(content))
        self.diff, self.bytes = sha256(archive.getvalue()), gzip.compress(archive.getvalue(), 1, mtime=0)


def image(layers, labels=ROOT, **changes):
    """The manifest, with some fields changed, and the blobs that it names."""
    diffs = [f"sha256:{layer.diff}" for layer in layers]
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Labels": labels},
                         "rootfs": {"type": "layers", "diff_ids": diffs}}).encode()
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(CONFIG, config),
                "layers": [descriptor(LAYER, layer.bytes) for layer in layers]}
    return json.dumps(manifest | changes).encode(), [config, *(layer.bytes for layer in layers)]


def descriptor(kind, content):
    return {"mediaType": kind, "digest": f"sha256:{sha256(content)}", "size": len(content)}


def write_layout(folder, manifest, blobs, **entry):
    """Replaces the one image of an OCI layout. `entry` changes its descriptor in the index."""
    (folder / "blobs/sha256").mkdir(parents=True, exist_ok=True)
    for blob in [*blobs, manifest]:
        write_new(folder / "blobs/sha256" / sha256(blob), blob)
    write_new(folder / "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    index = {"schemaVersion": 2, "manifests": [descriptor(MANIFEST, manifest) | entry]}
    write_new(folder / "index.json.new", json.dumps(index).encode())
    os.replace(folder / "index.json.new", folder / "index.json")


def write_new(path, content):
    if not path.exists():
        path.write_bytes(content)


def push(registry, repository, manifest, blobs, tag="now"):
    """Uploads the blobs that are missing, and lets the tag name the manifest."""
    connection = http.client.HTTPConnection(registry, timeout=30)

    def ask(method, path, content=None, kind="application/octet-stream"):
        connection.request(method, path, content, {"content-type": kind})
        answer = connection.getresponse()
        answer.read()
        if answer.status >= 400 and method != "HEAD":
            raise OSError(f"{registry} answers {answer.status} to {method} {path}")
        return answer

    for blob in blobs:
        if ask("HEAD", f"/v2/{repository}/blobs/sha256:{sha256(blob)}").status == 404:
            place = ask("POST", f"/v2/{repository}/blobs/uploads/").getheader("location").split(registry)[-1]
            ask("PUT", f"{place}{'&' if '?' in place else '?'}digest=sha256:{sha256(blob)}", blob)
    ask("PUT", f"/v2/{repository}/manifests/{tag}", manifest, MANIFEST)


class Series:
    """The states of the series, forth and back: the packages that change most often, as many as LARGEST allows."""

    def __init__(self, folder, target):
        self.folder, self.target, self.layers = Path(folder), Path(target), {}
        self.steps = json.loads((self.folder / "steps.json").read_text())
        files = [self.files(number) for number in range(len(self.steps))]
        changes, sizes = collections.Counter(), collections.Counter()
        for path, source in (pair for step in files for pair in step.items()):
            changes[path.parts[0]] += 1
            sizes[path.parts[0]] = max(sizes[path.parts[0]], source.stat().st_size)
        self.states, chosen, state, total = [], set(), {}, 0
        for package, _ in sorted(changes.items(), key=lambda pair: (-pair[1], sizes[pair[0]])):
            if total + sizes[package] <= LARGEST:
                total += sizes[package]
                chosen.add(package)
        for step, changed in zip(self.steps, files):
            removed = set(map(Path, step["removed"]))
            state = {path: source for path, source in (state | changed).items() if path not in removed}
            self.states.append({path: source for path, source in state.items() if path.parts[0] in chosen})
        # A catalog that loses more than 30 % of its packages at once is refused, as the first ones of a generated series would be
        # when the way back reaches them.
        count = lambda state: len({path.parts[0] for path in state})
        most = max(map(count, self.states))
        self.states = [state for state in self.states if count(state) >= 0.8 * most]
        self.states += self.states[-2:0:-1]

    def files(self, number):
        root = self.folder / f"{number:03}" / "configs"
        return {path.relative_to(root): path for path in sorted(root.rglob("*")) if path.is_file()}

    def layer(self, number):
        number %= len(self.states)
        if number not in self.layers:
            files = {f"configs/{path}": source.read_bytes() for path, source in self.states[number].items()}
            self.layers[number] = Layer(files)
        return self.layers[number]

    def lay_out(self, number, folder):
        """A folder with the files of the state, which are links."""
        for path, source in self.states[number % len(self.states)].items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.link(source, folder / path)
