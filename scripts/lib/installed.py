"""A cluster that has an operator of each package of a catalog, in the oldest version of its default channel.

    installed.py objects LINES    prints the objects that OLM v0 and v1 keep, as a List for kubectl
    installed.py list LINES       prints the same as lines `package version channel`

LINES are canonical lines of a catalog. Every third operator is a ClusterExtension, the others have a Subscription and a
ClusterServiceVersion, and some of these are copied into another namespace.
"""

import json
import re
import sys
from collections import defaultdict

command, path = sys.argv[1:]
packages, channels, bundles = {}, {}, defaultdict(dict)
with open(path) as lines:
    for meta in map(json.loads, lines):
        match meta["schema"]:
            case "olm.package":
                packages[meta["name"]] = meta.get("defaultChannel")
            case "olm.channel":
                channels[meta["package"], meta["name"]] = meta["entries"]
            case "olm.bundle":
                bundles[meta["package"]][meta["name"]] = meta["properties"]


def version_of(properties):
    return next(one["value"]["version"] for one in properties if one["type"] == "olm.package")


# Names of objects have neither capitals nor plus signs, and names of some bundles do.
def is_name(name):
    return re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) and len(name) <= 250


def operators():
    for package, channel in sorted(packages.items()):
        names = [entry["name"] for entry in channels.get((package, channel), [])]
        names = [name for name in names if is_name(name) and name in bundles[package]]
        if names and is_name(package):
            oldest = names[-1]
            yield package, channel, oldest, bundles[package][oldest]


def extension(package, channel, bundle, properties):
    return {
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterExtension",
        "metadata": {"name": package},
        "spec": {
            "namespace": "first",
            "source": {"sourceType": "Catalog", "catalog": {"packageName": package, "channels": [channel]}},
        },
        "status": {"install": {"bundle": {"name": bundle, "version": version_of(properties)}}},
    }


def subscription(namespace, package, channel, bundle):
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": package, "namespace": namespace},
        "spec": {"name": package, "channel": channel, "source": "a", "sourceNamespace": "a"},
        "status": {"installedCSV": bundle, "lastUpdated": "2026-01-01T00:00:00Z"},
    }


def installed_version(namespace, origin, bundle, properties):
    kept = [one for one in properties if one["type"] in ("olm.package", "olm.maxOpenShiftVersion")]
    annotations = {"olm.operatorNamespace": origin, "operatorframework.io/properties": json.dumps({"properties": kept})}
    labels = {} if namespace == origin else {"olm.copiedFrom": origin}
    install = {"strategy": "deployment", "spec": {"deployments": []}}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": bundle, "namespace": namespace, "annotations": annotations, "labels": labels},
        "spec": {"displayName": bundle, "version": version_of(properties), "install": install},
    }


def objects():
    for number, (package, channel, bundle, properties) in enumerate(operators()):
        if number % 3 == 0:
            yield extension(package, channel, bundle, properties)
            continue
        namespace = ("first", "second")[number % 2]
        yield subscription(namespace, package, channel, bundle)
        yield installed_version(namespace, namespace, bundle, properties)
        if number % 5 == 0:
            yield installed_version("copies", namespace, bundle, properties)


if command == "objects":
    json.dump({"apiVersion": "v1", "kind": "List", "items": list(objects())}, sys.stdout)
else:
    for package, channel, _, properties in operators():
        print(package, version_of(properties), channel)
