"""Checks objects with the schemas of their CustomResourceDefinitions. Prints what is wrong.

    crd_manifests.py FOLDER-OR-FILE... <OBJECTS    objects are YAML documents

As the API server with strict field validation: a field that the schema does not have is an error.
"""

import sys
from pathlib import Path

import jsonschema
import yaml


def closed(schema):
    """Returns the schema without other fields than it names."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    own = {key: closed(value) for key, value in schema.items()}
    if isinstance(own.get("properties"), dict) and own.get("type") == "object" and not own.get("x-kubernetes-preserve-unknown-fields"):
        own.setdefault("additionalProperties", False)
    if own.pop("nullable", False):
        return {"anyOf": [own, {"type": "null"}]}
    return own


schemas = {}
for place in map(Path, sys.argv[1:]):
    for file in sorted(place.glob("*.yaml")) if place.is_dir() else [place]:
        definition = yaml.safe_load(file.read_text())
        spec = definition["spec"]
        for version in spec["versions"]:
            schema = closed(version["schema"]["openAPIV3Schema"])
            # The server knows the metadata of every object.
            schema["properties"]["metadata"] = {"type": "object"}
            schemas[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
count = 0
for manifest in yaml.safe_load_all(sys.stdin):
    count += 1
    validator = jsonschema.Draft202012Validator(schemas[manifest["apiVersion"], manifest["kind"]])
    for error in validator.iter_errors(manifest):
        print(f"{manifest['kind']} {manifest['metadata']['name']}: {error.json_path}: {error.message}"[:300])
print(f"{count} objects")
