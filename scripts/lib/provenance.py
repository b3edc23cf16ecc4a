"""Writes and checks the statement of provenance of a release: in-toto, with a predicate of SLSA v1.

    provenance.py write FOLDER VERSION REVISION TIME PROFILE PART...   prints the statement about the files of the folder
    provenance.py check FOLDER VERSION REVISION                        reads it, and compares it with the files of the folder
    provenance.py payload STATEMENT                                    prints the bytes that are signed in an envelope
    provenance.py envelope STATEMENT SIGNATURE                         prints the envelope, one line; SIGNATURE has base64

An envelope is one of DSSE v1 (github.com/secure-systems-lab/dsse).

RELEASE_BUILDER in the environment names the builder. The statement has no time of the run: two runs give the same bytes.
"""
import base64, hashlib, json, os, pathlib, subprocess, sys

REPOSITORY = "https://github.com/catalog-mirror/catalog-mirror"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
BUILD_TYPE = f"{REPOSITORY}/blob/main/infra/RELEASES.md#how-a-release-is-built"
# What is made after the statement, or says what the statement says.
UNNAMED = {"SHA256SUMS", "cosign.pub"}


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def subjects(folder):
    """Returns name and hash of each file of the release."""
    files = sorted(path for path in folder.iterdir() if path.name not in UNNAMED and not path.name.endswith((".sig", ".intoto.jsonl", ".provenance.json")))
    return {path.name: sha256(path) for path in files}


def statement(folder, version, revision, time, profile, parts):
    root = pathlib.Path(os.environ["ROOT"])
    compiler = subprocess.run(["rustc", "--version"], capture_output=True, check=True, text=True).stdout.split()[1]
    # A changed tree has no commit that others could fetch.
    commit = {} if revision.endswith("-dirty") or revision == "unknown" else {"digest": {"gitCommit": revision}}
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subjects(folder).items()],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": version, "profile": profile, "parts": parts},
                "internalParameters": {"revision": revision, "sourceDate": time},
                "resolvedDependencies": [
                    {"uri": f"git+{REPOSITORY}@refs/tags/v{version}", **commit},
                    {"uri": f"pkg:generic/rust@{compiler}"},
                    {"name": "Cargo.lock", "digest": {"sha256": sha256(root / "Cargo.lock")}},
                    {"name": "scripts/lib/tools.sh", "digest": {"sha256": sha256(root / "scripts/lib/tools.sh")}},
                ],
            },
            "runDetails": {"builder": {"id": os.environ.get("RELEASE_BUILDER") or f"{REPOSITORY}/blob/main/scripts/release"}},
        },
    }


def check(folder, version, revision):
    """Returns what is wrong with the statement of the folder."""
    read = json.loads((folder / f"catalog-mirror-{version}.provenance.json").read_text())
    found = {subject["name"]: subject["digest"]["sha256"] for subject in read["subject"]}
    wrong = []
    if (read["_type"], read["predicateType"]) != (STATEMENT, PREDICATE):
        wrong.append(f"the statement is a {read['_type']} with {read['predicateType']}")
    if found != subjects(folder):
        wrong.append(f"other files or hashes: {sorted(set(found.items()) ^ set(subjects(folder).items()))}")
    definition = read["predicate"]["buildDefinition"]
    if definition["internalParameters"]["revision"] != revision:
        wrong.append(f"it was built from {definition['internalParameters']['revision']}, not from {revision}")
    if definition["externalParameters"]["version"] != version:
        wrong.append(f"it is version {definition['externalParameters']['version']}, not {version}")
    return wrong


def payload(written):
    """Returns what is signed: the pre-authentication encoding of DSSE."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(written), written)


def envelope(written, signature):
    return {"payloadType": PAYLOAD_TYPE, "payload": base64.b64encode(written).decode(), "signatures": [{"keyid": "", "sig": signature}]}


def main(command, path, *rest):
    path = pathlib.Path(path)
    match command:
        case "write":
            version, revision, time, profile, *parts = rest
            print(json.dumps(statement(path, version, revision, time, profile, parts), indent=1))
        case "check":
            wrong = check(path, *rest)
            if wrong:
                sys.exit("provenance: " + "; ".join(wrong))
        case "payload":
            sys.stdout.buffer.write(payload(path.read_bytes()))
        case "envelope":
            signature = pathlib.Path(*rest).read_text().strip()
            print(json.dumps(envelope(path.read_bytes(), signature)))


main(*sys.argv[1:])
