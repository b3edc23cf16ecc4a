"""Prints a CycloneDX SBOM of a program, from what cargo compiled for it.

    sbom.py PACKAGE TARGET METADATA TIME --component PURL... <MESSAGES

PACKAGE   that has the program
TARGET    the target for which it was compiled
METADATA  what `cargo metadata` printed: licences of packages
TIME      of the document, in ISO 8601
MESSAGES  what `cargo build --message-format json` printed: one artifact for each crate, also for one that was compiled before
--component  what the image has besides the crates
"""
import argparse, json, sys, tomllib, urllib.parse, uuid


def linked(messages, target):
    """Returns the IDs of the packages of which a library or the program was made for the target.

    The folder tells them from crates that only build scripts and macros use, which cargo compiles for the machine that builds.
    """
    for line in messages:
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or "custom-build" in message["target"]["kind"]:
            continue
        if any(f"/{target}/" in name for name in message["filenames"]):
            yield message["package_id"]


def purl(name, version):
    return f"pkg:cargo/{name}@{urllib.parse.quote(version)}"


def component(package, checksums):
    name, version = package["name"], package["version"]
    found = {"type": "library", "bom-ref": purl(name, version), "name": name, "version": version, "purl": purl(name, version)}
    if package["license"]:
        # Cargo allowed a slash for OR once.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if (name, version) in checksums:
        found["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def other(text):
    """Returns a component of a package URL, such as pkg:pypi/certifi@2026.10.18."""
    name, version = text.rsplit("/", 1)[1].split("@")
    return {"type": "library", "bom-ref": text, "name": name, "version": version, "purl": text}


def main():
    parser = argparse.ArgumentParser()
    for name in ("package", "target", "metadata", "time"):
        parser.add_argument(name)
    parser.add_argument("--component", action="append", default=[])
    options = parser.parse_args()
    with open(options.metadata, encoding="utf-8") as file:
        metadata = json.load(file)
    with open(metadata["workspace_root"] + "/Cargo.lock", "rb") as file:
        lock = tomllib.load(file)["package"]
    checksums = {(each["name"], each["version"]): each["checksum"] for each in lock if "checksum" in each}
    ids = set(linked(sys.stdin, options.target))
    crates = sorted((each for each in metadata["packages"] if each["id"] in ids), key=lambda each: (each["name"], each["version"]))
    own = next(each for each in crates if each["name"] == options.package)
    components = [component(each, checksums) for each in crates if each is not own] + [other(each) for each in options.component]
    subject = {**component(own, checksums), "type": "application"}
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"timestamp": options.time, "component": subject, "properties": [{"name": "target", "value": options.target}]},
        "components": components,
    }
    # The same content has the same number.
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True)).urn
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()


sys.exit(main())
