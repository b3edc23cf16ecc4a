"""A cluster that has an operator of each package of a catalog, in the oldest version of its default channel.

    installed.py objects LINES    prints the objects that OLM v0 and v1 keep, as a List for kubectl
    installed.py list LINES       prints the same as lines `package version channel`

LINES are canonical lines of a catalog. Every third operator is a ClusterExtension, the others have a Subscription and a
ClusterServiceVersion, and some of these are copied into another namespace.
"""

import json
import re
import sys

from selections import read


# Names of objects have neither capitals nor plus signs, and names of some bundles do.
def is_name(name):
    return re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) and len(name) <= 250


def operators(path):
    """Yields package, channel, bundle, version and properties of each operator."""
    with open(path) as lines:
        packages = read(lines)
    for name, package in sorted(packages.items()):
        entries = package.channels.get(package.default, {})
        bundles = [bundle for bundle in entries if is_name(bundle) and bundle in package.versions]
        if bundles and is_name(name):
            oldest = bundles[-1]
            yield name, package.default, oldest, package.versions[oldest], package.properties[oldest]


def extension(package, channel, bundle, version):
    return {
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterExtension",
        "metadata": {"name": package},
        "spec": {
            "namespace": "first",
            "source": {"sourceType": "Catalog", "catalog": {"packageName": package, "channels": [channel]}},
        },
        "status": {"install": {"bundle": {"name": bundle, "version": version}}},
    }


def subscription(namespace, package, channel, bundle):
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": package, "namespace": namespace},
        "spec": {"name": package, "channel": channel, "source": "a", "sourceNamespace": "a"},
        "status": {"installedCSV": bundle, "lastUpdated": "2026-01-01T00:00:00Z"},
    }


def installed_version(namespace, origin, bundle, version, properties):
    kept = [one for one in properties if one["type"] in ("olm.package", "olm.maxOpenShiftVersion")]
    annotations = {"olm.operatorNamespace": origin, "operatorframework.io/properties": json.dumps({"properties": kept})}
    labels = {} if namespace == origin else {"olm.copiedFrom": origin}
    install = {"strategy": "deployment", "spec": {"deployments": []}}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": bundle, "namespace": namespace, "annotations": annotations, "labels": labels},
        "spec": {"displayName": bundle, "version": version, "install": install},
    }


def objects(path):
    for number, (package, channel, bundle, version, properties) in enumerate(operators(path)):
        if number % 3 == 0:
            yield extension(package, channel, bundle, version)
            continue
        namespace = ("first", "second")[number % 2]
        yield subscription(namespace, package, channel, bundle)
        for place in [namespace, *(["copies"] if number % 5 == 0 else [])]:
            yield installed_version(place, namespace, bundle, version, properties)


def main(command, path):
    if command == "objects":
        json.dump({"apiVersion": "v1", "kind": "List", "items": list(objects(path))}, sys.stdout)
        return
    for package, channel, _, version, _ in operators(path):
        print(package, version, channel)


if __name__ == "__main__":
    main(*sys.argv[1:])
