"""Bundles of a catalog, their CustomResourceDefinitions for crdify, and images of them.

    bundles.py mutations                               prints a catalog of two bundles for each mutation of a definition
    bundles.py compare LINES ORACLE PROGRAM STORE NAME   `bundle diff` against crdify, for all consecutive versions
    bundles.py every LINES ORACLE PROGRAM FOLDER         `bundle diff` against crdify, for each definition from each of its forms to each other
    bundles.py changed LINES FOLDER                      two bundles, `old` and `new`, of all definitions that change, and the pairs
    bundles.py layout LINES FOLDER COUNT               writes an image layout of each of the first bundles that have objects

LINES are canonical lines of a catalog. ORACLE is the program of scripts/lib/go/crds.
"""

import base64
import itertools
import json
import pathlib
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from chaos_images import Layer, image, write_layout
from selections import version_key

# Values of a keyword, each of which changes into each other one. None is its absence.
VALUES = {
    "type": ["string", "integer", None],
    "description": ["a", "b", None],
    "pattern": ["a", "b", "", None],
    "nullable": [True, False, None],
    "default": [1, {"a": 1}, False, "", None],
    "enum": [["a"], ["a", "b"], ["b", "a"], [], None],
    "required": [["a"], ["b", "a"], ["a", "b"], [], None],
    "format": ["int32", "int64", None],
    "uniqueItems": [True, False, None],
    "multipleOf": [1, 2, None],
    "exclusiveMaximum": [True, None],
    "maximum": [0, 1.5, 2, None],
    "minimum": [0, 1.5, 2, None],
    **{f"{bound}{of}": [0, 1, 2, None] for bound in ("max", "min") for of in ("Items", "Length", "Properties")},
    "x-kubernetes-preserve-unknown-fields": [True, False, None],
    "x-kubernetes-list-type": ["set", "map", None],
    "x-kubernetes-validations": [[{"rule": "a"}], [{"rule": "b"}], [], None],
    "properties": [{"a": {"type": "string"}}, {"a": {"properties": {"b": {}}}}, {"c": {}}, {}, None],
    "items": [{"type": "string"}, {"type": "string", "description": "a"}, {"minimum": 1}, None],
    "additionalProperties": [True, False, {}, {"type": "string"}, {"type": "string", "description": "a"}, None],
    "anyOf": [[{"minimum": 1}], [{"minimum": 2}, {"nullable": True}], [{"nullable": True}, {"minimum": 2}], [], None],
    "allOf": [[{"minimum": 1}, {"enum": ["a", "b"]}], [{"enum": ["b", "a"]}, {"minimum": 1}], [{"minimum": 1}], None],
    "oneOf": [
        [{"minimum": 1}],
        [{"minimum": 1, "description": "a"}],
        [{"minimum": 1}, {"required": ["a", "b"]}],
        [{"required": ["a", "b"], "title": "a"}, {"minimum": 1}],
        [{"minimum": 2}, {"minimum": 1}, {"minimum": 1}],
        [{"not": {"minimum": 1}}],
        [{"not": {"minimum": 1, "description": "a"}}],
        [],
        None,
    ],
    "not": [{"minimum": 1}, {}, None],
    "patternProperties": [{"a": {"minimum": 1}}, {"a": {"minimum": 2}}, {}, None],
    "dependencies": [{"a": ["b"]}, {"a": {"minimum": 1}}, None],
}
# Lists whose order has no meaning. crdify compares some of them in their order.
UNORDERED = ("allOf", "anyOf", "enum", "oneOf", "required")
# Definitions that are compared by one run of `bundle diff`.
BATCH = 100
# The same for the whole definition: its versions, each with the type of a field, and which of them is stored.
VERSIONS = [
    {"v1": "string"},
    {"v1": "string", "v1beta1": "string"},
    {"v1": "string", "v1beta1": "integer"},
    {"v1": "string", "v1beta1": "integer", "v2alpha1": "boolean"},
    {"v1beta1": "string"},
]


def definition(versions, stored, scope="Namespaced", strategy="None"):
    """Returns a definition whose versions have these schemas."""
    versions = [
        {"name": name, "served": True, "storage": name == stored, "schema": {"openAPIV3Schema": schema}}
        for name, schema in versions.items()
    ]
    spec = {"group": "example.com", "scope": scope, "versions": versions, "conversion": {"strategy": strategy}}
    metadata = {"name": "things.example.com"}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": metadata, "spec": spec}


def mutations():
    """Returns pairs of definitions."""
    for keyword, values in VALUES.items():
        one = [{} if value is None else {keyword: value} for value in values]
        schemas = [{"properties": {"list": {"type": "array", "items": schema}}} for schema in one]
        for old in schemas:
            yield from ([definition({"v1": schema}, "v1") for schema in (old, new)] for new in schemas)
    several = [{name: {"properties": {"a": {"type": kind}}} for name, kind in row.items()} for row in VERSIONS]
    for old in several:
        for new in several:
            for strategy in ("None", "Webhook"):
                yield [definition(old, next(iter(old))), definition(new, next(iter(new)), strategy=strategy)]
    yield [definition({"v1": {}}, "v1", scope) for scope in ("Namespaced", "Cluster")]


def print_mutations():
    """Prints the catalog."""
    for at, pair in enumerate(mutations()):
        print_package(f"mutation-{at:04}", [({}, [definition]) for definition in pair])


def print_package(name, versions):
    """Prints a package; each of its versions has more fields of the spec of its operator, and more objects."""
    names = [f"{name}.v{version}" for version in range(1, len(versions) + 1)]
    entries = [{"name": new, **({"replaces": old} if old else {})} for old, new in zip([None, *names], names)]
    print(json.dumps({"schema": "olm.package", "name": name, "defaultChannel": "a"}))
    print(json.dumps({"schema": "olm.channel", "package": name, "name": "a", "entries": entries}))
    for version, (bundle, (spec, objects)) in enumerate(zip(names, versions), 1):
        kind = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": bundle}}
        manifests = [kind | {"spec": {"version": f"{version}.0.0", **spec}}, *objects]
        data = [base64.b64encode(json.dumps(manifest).encode()).decode() for manifest in manifests]
        properties = [{"type": "olm.bundle.object", "value": {"data": text}} for text in data]
        properties.append({"type": "olm.package", "value": {"packageName": name, "version": f"{version}.0.0"}})
        print(json.dumps({"schema": "olm.bundle", "package": name, "name": bundle, "properties": properties}))


def bundles(lines):
    """Returns package, version, objects and name of each bundle with objects, in the order of packages and versions."""
    found = []
    for line in open(lines, encoding="utf-8"):
        document = json.loads(line)
        if document.get("schema") != "olm.bundle":
            continue
        values = defaultdict(list)
        for entry in document["properties"]:
            values[entry["type"]].append(entry["value"])
        objects = [base64.b64decode(value["data"]) for value in values["olm.bundle.object"]]
        if objects:
            version = values["olm.package"][0]["version"]
            found.append((document["package"], version_key(version), version, objects, document["name"]))
    return [(package, *rest) for package, _, *rest in sorted(found, key=lambda row: row[:2])]


def consecutive(lines):
    """Returns the pairs of bundles of one package that follow each other."""
    found = bundles(lines)
    return [(old, new) for old, new in zip(found, found[1:]) if old[0] == new[0]]


def differences(pairs, program, store, catalog):
    """Returns what `bundle diff` says about each pair."""

    def difference(pair):
        (package, old, *_), (_, new, *_) = pair
        command = [program, "bundle", "diff", "--json", "--store", store, catalog, package, old, new]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    with ThreadPoolExecutor(2) as workers:
        return list(workers.map(difference, pairs))


def definitions(pair):
    """Returns the name, the old and the new form of each definition that both bundles have."""
    objects = [[json.loads(text) for text in texts] for _, _, texts, _ in pair]
    old, new = ({one["metadata"]["name"]: one for one in side if one["kind"] == "CustomResourceDefinition"} for side in objects)
    return [(name, crd, new[name]) for name, crd in old.items() if name in new]


def changed(lines, folder):
    """Writes the definitions that differ from one version to the next as two bundles, each under a name of its own."""
    both = [crds for pair in consecutive(lines) for _, *crds in definitions(pair)]
    found = [(old, new) for old, new in both if old["spec"] != new["spec"]]
    write_pairs(found, folder)
    pathlib.Path(folder, "pairs").write_text("".join(json.dumps(pair) + "\n" for pair in found), encoding="utf-8")
    print(len(found))


def write_pairs(pairs, folder):
    """Writes the older and the newer definitions of pairs as bundles, `old` and `new`."""
    for at, pair in enumerate(pairs):
        for side, crd in zip(("old", "new"), pair):
            write_manifest(folder, side, at, crd | {"metadata": {"name": f"c{at}.example.com"}})
    for side in ("old", "new"):
        kind = {"kind": "ClusterServiceVersion", "metadata": {"name": side}}
        write_manifest(folder, side, "operator", kind)
        pathlib.Path(folder, side, "metadata").mkdir()


def write_manifest(folder, side, name, manifest):
    """Writes a manifest of a bundle."""
    file = pathlib.Path(folder, side, "manifests", f"{name}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(manifest), encoding="utf-8")


def unordered(value):
    """Returns a schema with each list whose order has no meaning in one order."""
    if isinstance(value, list):
        return [unordered(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: unordered(item) for key, item in value.items()}
    for key in UNORDERED:
        if isinstance(found.get(key), list):
            found[key].sort(key=lambda item: json.dumps(item, sort_keys=True))
    return found


def in_order_of(old, new):
    """Returns a new schema with the lists of an old one where only their order differs."""
    if isinstance(old, list) and isinstance(new, list):
        return [in_order_of(*pair) for pair in zip(old, new)] + new[len(old) :]
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    found = {key: in_order_of(old.get(key), item) for key, item in new.items()}
    for key in UNORDERED:
        if isinstance(old.get(key), list) and isinstance(new.get(key), list):
            if unordered({key: old[key]}) == unordered({key: new[key]}):
                found[key] = old[key]
    return found


def compare(lines, oracle, program, store, catalog):
    """Prints each pair of versions that is judged in another way, and fails if there is one."""
    pairs = consecutive(lines)
    asked = [(at, name, crds) for at, pair in enumerate(pairs) for name, *crds in definitions(pair)]
    answers = said_by_crdify([crds for _, _, crds in asked], oracle)
    expected = [set() for _ in pairs]
    for (at, name, _), findings in zip(asked, answers, strict=True):
        expected[at].update(f"{name} {finding}" for finding in findings)
    different = 0
    for (old, new), found, crdify in zip(pairs, differences(pairs, program, store, catalog), expected):
        here = {f"{one['crd']} {finding(one)}" for one in found["unsafe"]}
        if here != crdify:
            different += 1
            print(*old[:2], new[1], "here", sorted(here - crdify), "crdify", sorted(crdify - here))
    print(len(asked), "pairs of definitions,", sum(map(bool, answers)), "of them unsafe")
    sys.exit(1 if different or not asked else 0)


def said_by_crdify(pairs, oracle):
    """Returns what crdify finds in each pair of definitions."""
    text = "".join(json.dumps([old, in_order_of(old, new)]) + "\n" for old, new in pairs)
    answer = subprocess.run([oracle], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def finding(change):
    """Returns an unsafe change as ORACLE names it."""
    return " ".join([change["version"] or "-", change["property"] or "-", change["rule"]])


def every(lines, oracle, program, folder):
    """Compares all ordered pairs of the forms that each definition has in a catalog, and fails as `compare` does."""
    forms = defaultdict(dict)
    for _, _, objects, _ in bundles(lines):
        for crd in map(json.loads, objects):
            if crd["kind"] == "CustomResourceDefinition":
                forms[crd["metadata"]["name"]][json.dumps(crd["spec"], sort_keys=True)] = crd
    pairs = [pair for found in forms.values() for pair in itertools.permutations(found.values(), 2)]
    answers = said_by_crdify(pairs, oracle)
    different = 0
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        place = pathlib.Path(folder, str(start))
        write_pairs(batch, place)
        command = [program, "bundle", "diff", "--json", f"dir:{place}/old", f"dir:{place}/new"]
        here = defaultdict(set)
        for change in json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["unsafe"]:
            here[change["crd"]].add(finding(change))
        for at, (old, _) in enumerate(batch):
            found, crdify = here[f"c{at}.example.com"], set(answers[start + at])
            if found != crdify:
                different += 1
                print(old["metadata"]["name"], start + at, "here", sorted(found - crdify), "crdify", sorted(crdify - found))
    print(len(forms), "definitions,", len(pairs), "pairs of their forms,", sum(map(bool, answers)), "of them unsafe,", different, "different")
    sys.exit(1 if different or not pairs else 0)


def write_layouts(lines, folder, count):
    """Writes the layouts and prints their folder and the package and the name of each bundle."""
    labels = {f"operators.operatorframework.io.bundle.{part}.v1": f"{part}/" for part in ("manifests", "metadata")}
    for at, (package, _, objects, name) in enumerate(bundles(lines)[: int(count)]):
        layout = pathlib.Path(folder, str(at))
        files = {f"manifests/{number}.yaml": text for number, text in enumerate(objects)}
        files["metadata/annotations.yaml"] = b"annotations: {}\n"
        write_layout(layout, *image([Layer(files)], labels))
        print(layout, package, name)


if __name__ == "__main__":
    {"mutations": print_mutations, "compare": compare, "every": every, "changed": changed, "layout": write_layouts}[sys.argv[1]](*sys.argv[2:])
