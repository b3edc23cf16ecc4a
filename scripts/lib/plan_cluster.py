"""A cluster with one operator for each thing that `plan` has to tell apart, and the catalogs for it.

    plan_cluster.py catalogs FOLDER   writes a folder for each catalog
    plan_cluster.py objects           prints the objects that OLM v0 and v1 keep, as a List for kubectl
    plan_cluster.py rows PLAN         prints the rows of `plan --json`, each with its target, its reason and its remarks on a line

The packages are in two catalogs, which the cluster changes for those of its next version. The Subscriptions name the CatalogSources that
`manifests` makes of them.
"""

import json
import pathlib
import sys

from installed import extension, installed_version, subscription

# Entries of each channel by catalog and package, each an update of the one before it.
CATALOGS = {
    "team-v4-20": {"both": {"s": ["1.0.0", "1.1.0"]}, "stops": {"s": ["1.0.0", "1.1.0"]}, "plain": {"s": ["1.0.0"]}},
    "team-v4-21": {"both": {"s": ["1.0.0", "1.1.0"]}, "stops": {"s": ["1.0.0", "1.2.0"]}, "plain": {"s": ["1.0.0"]}},
    "vendor-v4-20": {
        "both": {"s": ["1.0.0", "2.0.0"]},
        "labelled": {"s": ["1.0.0", "1.1.0"]},
        "pinned": {"s": ["1.0.0", "1.1.0"]},
        "channels": {"a": ["1.0.0", "1.1.0"], "b": ["1.0.0", "1.2.0"], "c": ["1.0.0", "9.0.0"]},
    },
    "vendor-v4-21": {
        "both": {"s": ["1.0.0", "2.0.0", "2.1.0"]},
        "labelled": {"s": ["1.0.0", "1.1.0"]},
        "pinned": {"s": ["1.0.0", "1.1.0"]},
        "channels": {"a": ["1.0.0", "1.1.0"], "b": ["1.0.0", "1.2.0"], "c": ["1.0.0", "9.0.0"]},
    },
}
# The version of a package that stops the upgrade of the cluster.
STOPS = ("stops", "1.1.0")


def documents(package, channels):
    """Yields the documents of a package."""
    yield {"schema": "olm.package", "name": package, "defaultChannel": next(iter(channels))}
    for channel, versions in channels.items():
        entries = [{"name": f"{package}.v{version}"} for version in versions]
        for entry, before in zip(entries[1:], entries):
            entry["replaces"] = before["name"]
        yield {"schema": "olm.channel", "package": package, "name": channel, "entries": entries}
    for version in sorted({version for versions in channels.values() for version in versions}):
        properties = [{"type": "olm.package", "value": {"packageName": package, "version": version}}]
        if (package, version) == STOPS:
            properties.append({"type": "olm.maxOpenShiftVersion", "value": "4.20"})
        image = f"registry.example/{package}:{version}"
        yield {"schema": "olm.bundle", "package": package, "name": f"{package}.v{version}", "image": image, "properties": properties}


def write_catalogs(folder):
    """Writes the catalogs."""
    for name, packages in CATALOGS.items():
        found = [document for package in packages.items() for document in documents(*package)]
        path = pathlib.Path(folder, name, "catalog.json")
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(document) + "\n" for document in found), encoding="utf-8")


def subscribed(namespace, package, source, approval):
    """Returns a Subscription and the version that it has installed."""
    bundle = f"{package}.v1.0.0"
    one = subscription(namespace, package, "s", bundle)
    one["spec"] |= {"source": source, "sourceNamespace": "olm", "installPlanApproval": approval}
    return [one, installed_version(namespace, namespace, bundle, "1.0.0", [])]


def labelled(package, namespace, labels):
    """Returns a version that nothing but its labels describes."""
    one = installed_version(namespace, namespace, f"{package}.v1.0.0", "1.0.0", [])
    del one["metadata"]["annotations"]
    one["metadata"]["labels"] = labels
    return one


def extended(package, **catalog):
    """Returns a ClusterExtension with more fields of its source."""
    one = extension(package, "s", f"{package}.v1.0.0", "1.0.0")
    one["spec"]["source"]["catalog"] |= catalog
    return one


def objects():
    """Returns all objects but those of OLM itself."""
    selector = {"matchLabels": {"olm.operatorframework.io/metadata.name": "cc-vendor-v4-20"}}
    return [
        *subscribed("first", "both", "cs-vendor-v4-20", "Automatic"),
        *subscribed("second", "both", "cs-team-v4-20", "Automatic"),
        *subscribed("first", "stops", "cs-team-v4-20", "Automatic"),
        *subscribed("second", "stops", "cs-team-v4-20", "Manual"),
        *subscribed("first", "plain", "cs-team-v4-20", "Manual"),
        installed_version("copies", "first", "plain.v1.0.0", "1.0.0", []),
        labelled("labelled", "second", {"operators.coreos.com/labelled.second": ""}),
        labelled("plain-part", "second", {"olm.clusteroperator.name": "part-of-openshift"}),
        labelled("stranger", "second", {}),
        extended("pinned", version="1.0.0", selector=selector),
        extended("channels", channels=["a", "b"], selector=selector),
    ]


def print_rows(path):
    """Prints the rows of a plan."""
    for row in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["operators"]:
        last = [row, *row["now"], *row["after"]][-1]["version"]
        words = [row[field] or "-" for field in ("package", "namespace", "verdict", "catalog", "targetChannel")]
        print("; ".join([" ".join([*words, last]), *filter(None, [row["reason"]]), *row["remarks"]]))


def main(command, *arguments):
    """Runs a command."""
    if command == "objects":
        json.dump({"apiVersion": "v1", "kind": "List", "items": objects()}, sys.stdout)
    else:
        {"catalogs": write_catalogs, "rows": print_rows}[command](*arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
