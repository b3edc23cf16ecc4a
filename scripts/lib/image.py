"""Writes an OCI layout with an image index, without a base image: the same input gives the same bytes.

    image.py OUT --tag TAG --epoch SECONDS --arch ARCH... --program FILE=PATH --folder PATH --file FILE=PATH... --port PORT...
        [--argument TEXT...] [--variable NAME=VALUE...] --label NAME=VALUE...

--arch      the architectures, each of which gets an image
--program   its entry point
--argument  a default argument of the program
--folder    what the program writes besides /tmp
--file      a file that each image has; ARCH in the name of a file or of the program is replaced by the architecture
--port      a TCP port at which the program listens
--variable  an environment variable of the program
--label     a label of each image, which is also an annotation of the index and of its manifests
Prints for each platform: architecture, digest of its manifest, bytes to pull. Then `index`, digest of the index, bytes of all.
"""
import argparse, gzip, hashlib, io, json, pathlib, sys, tarfile

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

# The user of "distroless" images. Group 0, because OpenShift runs containers as any user of that group.
USER, GROUP = 65532, 0


def gzipped(data):
    """Compresses a layer; every runtime reads gzip. The header has no name and no time, and with any version of Python the same system:
    that of gzip.compress differs."""
    written = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=written, mtime=0) as file:
        file.write(data)
    return written.getvalue()


def tar_of(files, program, folder, epoch):
    """Returns a tar archive. Names are sorted and times equal, so the archive depends on nothing else than the files."""
    # Modes of the folders that are not 0755 and root's: whatever user runs the program, it may write there.
    modes = {"tmp": (0o1777, 0), folder: (0o775, USER)}
    folders = {str(parent) for path in [*files, *modes] for parent in pathlib.PurePosixPath(path).parents} - {"."}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(folders | set(modes) | set(files)):
            entry = tarfile.TarInfo(path)
            entry.mtime = epoch
            if path in files:
                entry.size = len(files[path])
                entry.mode = 0o755 if path == program else 0o644
                archive.addfile(entry, io.BytesIO(files[path]))
            else:
                entry.type = tarfile.DIRTYPE
                entry.mode, entry.uid = modes.get(path, (0o755, 0))
                entry.gid = GROUP
                archive.addfile(entry)
    return buffer.getvalue()


class Layout:
    """Blobs of an OCI layout."""

    def __init__(self, folder):
        self.blobs = folder / "blobs" / "sha256"
        self.blobs.mkdir(parents=True)

    def add(self, media_type, content, **fields):
        """Stores a blob, documents as JSON, and returns its descriptor."""
        if not isinstance(content, bytes):
            content = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        digest = hashlib.sha256(content).hexdigest()
        (self.blobs / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content), **fields}


def add_image(layout, architecture, options):
    """Stores the image for one architecture. Returns the descriptor of its manifest and the bytes that a pull fetches."""
    files = {path.lstrip("/"): pathlib.Path(source.replace("ARCH", architecture)).read_bytes() for source, path in [options.program, *options.file]}
    labels = dict(options.label)
    tar = tar_of(files, options.program[1].lstrip("/"), options.folder, options.epoch)
    layer = layout.add(LAYER, gzipped(tar))
    config = layout.add(CONFIG, {
        "architecture": architecture, "os": "linux", "created": labels["org.opencontainers.image.created"],
        "config": {
            "User": f"{USER}:{GROUP}", "Entrypoint": [options.program[1]], "Cmd": options.argument, "WorkingDir": "/",
            "Env": ["PATH=/usr/bin", *(f"{name}={value}" for name, value in options.variable)],
            "ExposedPorts": {f"{port}/tcp": {} for port in options.port}, "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]},
        "history": [{"created": labels["org.opencontainers.image.created"], "created_by": "scripts/image"}],
    })
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer], "annotations": labels}
    platform = {"architecture": architecture, "os": "linux"}
    descriptor = layout.add(MANIFEST, manifest, platform=platform)
    return descriptor, descriptor["size"] + config["size"] + layer["size"]


def pair(text):
    name, found, value = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, not {text}")
    return name, value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--epoch", type=int, required=True)
    parser.add_argument("--arch", nargs="+", required=True)
    parser.add_argument("--program", type=pair, required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--file", type=pair, action="append", required=True)
    parser.add_argument("--label", type=pair, action="append", required=True)
    parser.add_argument("--port", type=int, action="append", required=True)
    parser.add_argument("--argument", action="append", default=[])
    parser.add_argument("--variable", type=pair, action="append", default=[])
    options = parser.parse_args()
    layout = Layout(options.out)
    manifests, total = [], 0
    for architecture in sorted(options.arch):
        descriptor, size = add_image(layout, architecture, options)
        print(architecture, descriptor["digest"], size)
        manifests.append(descriptor)
        total += size
    index = layout.add(INDEX, {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": dict(options.label)})
    print("index", index["digest"], total + index["size"])
    index["annotations"] = {"org.opencontainers.image.ref.name": options.tag}
    top = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [index]}
    (options.out / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    # Last, because a layout without it is not one.
    (options.out / "index.json").write_text(json.dumps(top, sort_keys=True, separators=(",", ":")))


sys.exit(main())
