"""Makes a catalog of many packages with the icons and texts of real ones: of each its newest version, under new names.

    many_packages.py SOURCE COUNT >catalog.json
"""
import json, pathlib, sys

source, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])


def documents(text):
    """Returns the JSON documents that follow each other in a text."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield document
        while text[at : at + 1].isspace():
            at += 1


def heads():
    """Returns the package, a channel and the last bundle of each file."""
    for file in sorted(source.glob("*/catalog.json")):
        by_schema = {document["schema"]: document for document in documents(file.read_text())}
        package, bundle = by_schema.get("olm.package"), by_schema.get("olm.bundle")
        if package and bundle:
            yield package, bundle


# Without real ones in JSON, one that is made up.
MADE = {"schema": "olm.package", "name": "made"}, {"properties": [{"type": "olm.csv.metadata", "value": {"description": "It does nothing. " * 50}}]}
real = list(heads()) or [MADE]
for number in range(count):
    package, bundle = real[number % len(real)]
    name = f"{package['name'][:40].rstrip('-')}-{number}"
    properties = [one for one in bundle["properties"] if one["type"] in ("olm.csv.metadata", "olm.gvk")]
    properties.append({"type": "olm.package", "value": {"packageName": name, "version": "1.0.0"}})
    for document in (
        {**package, "name": name, "defaultChannel": "stable"},
        {"schema": "olm.channel", "package": name, "name": "stable", "entries": [{"name": f"{name}.v1.0.0"}]},
        {"schema": "olm.bundle", "package": name, "name": f"{name}.v1.0.0", "image": "registry.example/a:v1", "properties": properties},
    ):
        print(json.dumps(document))
