"""Writes and checks the statement of provenance of a release: in-toto, with a predicate of SLSA v1.

    provenance.py write FOLDER VERSION REVISION TIME PROFILE PROCESSORS PART...   prints the statement about the files of the folder
    provenance.py check FOLDER VERSION REVISION TIME PROFILE PROCESSORS PART...   fails unless the folder has this statement
    provenance.py payload STATEMENT                                               prints the bytes that are signed in an envelope
    provenance.py envelope STATEMENT SIGNATURE                                    prints the envelope, one line; SIGNATURE has base64

An envelope is one of DSSE v1 (github.com/secure-systems-lab/dsse).

RELEASE_BUILDER in the environment names the builder. The statement has no time of the run: two runs give the same bytes, and who signs
what another run made compares all of it with what the own checkout and compiler say.
"""
import base64, hashlib, json, os, pathlib, subprocess, sys

REPOSITORY = "https://github.com/catalog-mirror/catalog-mirror"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
BUILD_TYPE = f"{REPOSITORY}/blob/main/infra/RELEASES.md#how-a-release-is-built"


def statement_name(version):
    return f"catalog-mirror-{version}.provenance.json"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def subjects(folder, version):
    """Returns name and hash of each file of the release, but of those that are made after the statement."""
    later = {"SHA256SUMS", "cosign.pub", statement_name(version), f"catalog-mirror-{version}.intoto.jsonl"}
    files = sorted(path for path in folder.iterdir() if path.name not in later)
    signatures = {path.with_name(path.name + ".sig") for path in folder.iterdir()}
    return {path.name: sha256(path) for path in files if path not in signatures}


def source(root, version, revision):
    """Returns the address of the sources, with the tag of the version if the commit has it."""
    uri = f"git+{REPOSITORY}"
    tag = subprocess.run(["git", "rev-parse", "--verify", "--quiet", f"refs/tags/v{version}^{{commit}}"], capture_output=True, cwd=root, text=True)
    return f"{uri}@refs/tags/v{version}" if tag.stdout.strip() == revision else uri


def statement(folder, version, revision, time, profile, processors, *parts):
    root = pathlib.Path(os.environ["ROOT"])
    compiler = subprocess.run(["rustc", "--version"], capture_output=True, check=True, text=True).stdout.split()[1]
    # A changed tree has no commit that others could fetch.
    commit = {} if revision.endswith("-dirty") or revision == "unknown" else {"digest": {"gitCommit": revision}}
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subjects(folder, version).items()],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": version, "profile": profile, "processors": processors, "parts": list(parts)},
                "internalParameters": {"revision": revision, "sourceDate": time},
                "resolvedDependencies": [
                    {"uri": source(root, version, revision), **commit},
                    {"uri": f"pkg:generic/rust@{compiler}"},
                    {"name": "Cargo.lock", "digest": {"sha256": sha256(root / "Cargo.lock")}},
                    {"name": "scripts/lib/tools.sh", "digest": {"sha256": sha256(root / "scripts/lib/tools.sh")}},
                ],
            },
            "runDetails": {"builder": {"id": os.environ.get("RELEASE_BUILDER") or f"{REPOSITORY}/blob/main/scripts/release"}},
        },
    }


def rendered(document):
    return json.dumps(document, indent=1) + "\n"


def leaves(value, path=""):
    """Returns each value in a document by its path."""
    if isinstance(value, dict):
        return {key: leaf for name, below in value.items() for key, leaf in leaves(below, f"{path}.{name}").items()}
    if isinstance(value, list):
        return {key: leaf for index, below in enumerate(value) for key, leaf in leaves(below, f"{path}[{index}]").items()}
    return {path: value}


def check(folder, version, *rest):
    """Returns what is wrong with the statement of the folder."""
    written = (folder / statement_name(version)).read_text()
    expected = statement(folder, version, *rest)
    # What is signed are the bytes, and readers differ in what they make of a name that stands twice.
    if written == rendered(expected):
        return None
    found = json.loads(written)
    files, expected_files = ({subject["name"]: subject["digest"] for subject in read["subject"]} for read in (found, expected))
    if files != expected_files:
        names = sorted(name for name in files | expected_files if files.get(name) != expected_files.get(name))
        return f"other files or hashes: {' '.join(names)}"
    said, expected_to_say = leaves(found), leaves(expected)
    paths = sorted(path for path in said | expected_to_say if said.get(path) != expected_to_say.get(path))
    if not paths:
        return "its bytes are not those that this checkout writes"
    return "; ".join(f"it says {path} {said.get(path)}, but this checkout {expected_to_say.get(path)}" for path in paths)


def payload(written):
    """Returns what is signed: the pre-authentication encoding of DSSE."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(written), written)


def envelope(written, signature):
    return {"payloadType": PAYLOAD_TYPE, "payload": base64.b64encode(written).decode(), "signatures": [{"keyid": "", "sig": signature}]}


def main(command, path, *rest):
    path = pathlib.Path(path)
    match command:
        case "write":
            sys.stdout.write(rendered(statement(path, *rest)))
        case "check":
            wrong = check(path, *rest)
            if wrong:
                sys.exit(f"provenance: {wrong}")
        case "payload":
            sys.stdout.buffer.write(payload(path.read_bytes()))
        case "envelope":
            signature = pathlib.Path(*rest).read_text().strip()
            print(json.dumps(envelope(path.read_bytes(), signature)))


main(*sys.argv[1:])
