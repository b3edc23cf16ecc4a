#!/usr/bin/env python3
"""Compares selections of a published catalog with what oc-mirror v2's acceptance table promises, computed here on its own.

selections.py PROGRAM STORE CATALOG LINES PACKAGES: LINES has the canonical lines of CATALOG in STORE, and PACKAGES is the number
of packages to try, those with the most channels and bundles first. Prints each difference. Fails if there is one, or if a row
of the table was never answered with bundles.
"""

import collections
import json
import re
import subprocess
import sys
import tempfile

SEMVER = re.compile(r"^(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$")


class Refused(Exception):
    """A selection that has no valid result."""


def version_key(text):
    """Returns the precedence of a version (semver.org, 11), None if it is not semver."""
    match = SEMVER.match(text or "")
    if not match:
        return None
    parts = (match.group(4) or "").split(".") if match.group(4) else []
    pre = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
    return tuple(int(match.group(at)) for at in (1, 2, 3)), not pre, pre


class Package:
    def __init__(self, name):
        self.name, self.default, self.channels, self.versions = name, None, {}, {}

    def add(self, meta):
        if meta["schema"] == "olm.package":
            self.default = meta.get("defaultChannel")
        elif meta["schema"] == "olm.channel":
            self.channels[meta["name"]] = {entry["name"]: entry for entry in meta["entries"]}
        elif meta["schema"] == "olm.bundle":
            values = [prop["value"] for prop in meta.get("properties", []) if prop["type"] == "olm.package"]
            self.versions[meta["name"]] = values[0]["version"] if values else None

    def heads(self, channel, kept=None):
        entries = self.channels[channel]
        kept = set(entries) if kept is None else kept
        gone = {entries[name].get("replaces") for name in kept}
        gone |= {skip for name in kept for skip in entries[name].get("skips") or []}
        return {name for name in kept if name not in gone}

    def in_range(self, channel, low, high):
        # A pre-release is only in a range that names one, as Masterminds/semver has it.
        named = any(bound and not bound[1] for bound in (low, high))

        def fits(name):
            key = version_key(self.versions.get(name))
            return key is not None and (low is None or low <= key) and (high is None or key <= high) and (named or key[1])

        return {name for name in self.channels[channel] if fits(name)}

    def connected(self, channel, kept):
        """Returns the kept entries with those that lie between them on the way of `replaces` from the head."""
        entries, way = self.channels[channel], []
        at = min(self.heads(channel), default=None)
        while at in entries and at not in way:
            way.append(at)
            at = entries[at].get("replaces")
        inside = [place for place, name in enumerate(way) if name in kept]
        return kept | set(way[inside[0] : inside[-1]]) if inside else kept

    def check(self, channel, kept):
        """Refuses a part of a channel that is no valid channel: one head, from which all others are reached or skipped."""
        entries = self.channels[channel]
        if kept == set(entries):
            return
        if not kept <= set(self.versions):
            raise Refused("an entry without a bundle")
        heads = self.heads(channel, kept)
        if len(heads) != 1:
            raise Refused(f"{channel} has heads {heads}")
        skipped = {skip for name in kept for skip in entries[name].get("skips") or []}
        chain, at = set(), next(iter(heads))
        while at in kept and at not in chain:
            chain.add(at)
            if at in skipped:
                break
            at = entries[at].get("replaces")
        if kept - chain - skipped:
            raise Refused(f"{channel} has entries that its head does not reach")

    def is_valid(self, channel, kept):
        return not isinstance(outcome(lambda: self.check(channel, kept)), str)


def promised(package, selection, full):
    """Returns the promised entries by channel. `selection` is None for a selection of the whole catalog."""
    selection = selection or {}
    full = full or selection.get("full", False)
    named = {channel["name"]: channel for channel in selection.get("channels", [])}
    bundles = {bundle["name"] for bundle in selection.get("selectedBundles", [])}
    bounds = lambda where: {key: where[key] for key in ("minVersion", "maxVersion") if key in where}
    has_range = bounds(selection) or any(bounds(channel) for channel in named.values())
    if bundles and (named or has_range or full):
        raise Refused("selectedBundles stand alone")
    if full and has_range:
        raise Refused("full and a range")
    if bounds(selection) and any(bounds(channel) for channel in named.values()):
        raise Refused("a range on both")
    result = {}
    for channel in named or package.channels:
        limits = bounds(named.get(channel, {})) or bounds(selection)
        if bundles:
            kept = bundles & set(package.channels[channel])
        elif full:
            kept = set(package.channels[channel])
        elif limits:
            low, high = (version_key(limits.get(key)) for key in ("minVersion", "maxVersion"))
            kept = package.in_range(channel, low, high)
            if kept and not package.is_valid(channel, kept):
                kept = package.connected(channel, kept)
        else:
            kept = package.heads(channel)
            if len(kept) != 1:
                raise Refused(f"{channel} has heads {kept}")
        if not kept and named:
            raise Refused(f"nothing of {channel}")
        # A channel that the selection does not name goes if nothing of it is taken.
        if kept:
            package.check(channel, kept)
            result[channel] = kept
    default = selection.get("defaultChannel", package.default)
    if default not in result:
        raise Refused(f"no default channel {default}")
    return result, default


def rows(package):
    """Yields a name and a selection for each row of the table that needs a package."""
    channel = max(package.channels, key=lambda name: (len(package.channels[name]), name))
    other = min(package.channels, key=lambda name: (name == channel, name))
    both = [{"name": name} for name in sorted({channel, other, package.default})]
    in_channel = sorted(
        (version_key(package.versions.get(name)), package.versions.get(name))
        for name in package.channels[channel]
        if version_key(package.versions.get(name))
    )
    if not in_channel:
        return
    low = in_channel[len(in_channel) // 3][1]
    high = in_channel[max(len(in_channel) // 3, 2 * len(in_channel) // 3 - 1)][1]
    limits = {"minVersion": low, "maxVersion": high}
    one = {"defaultChannel": channel}
    yield "03 package", {}
    yield "04 package, full", {"full": True}
    yield "05 package, min", {"minVersion": low}
    yield "06 package, max", {"maxVersion": high}
    yield "07 package, min and max", limits
    yield "08 channel, defaultChannel", {"channels": [{"name": channel}], **one}
    yield "08 channel without defaultChannel", {"channels": [{"name": other}]}
    yield "09 channel, full", {"channels": [{"name": channel}], "full": True, **one}
    yield "10 several channels", {"channels": both}
    yield "11 channel, min", {"channels": [{"name": channel, "minVersion": low}], **one}
    yield "12 channel, max", {"channels": [{"name": channel, "maxVersion": high}], **one}
    yield "13 channel, min and max", {"channels": [{"name": channel, **limits}], **one}
    yield "14 channels, range on package", {"channels": both, **limits}
    yield "14 range on both", {"channels": [{"name": channel, "minVersion": low}], "maxVersion": high, **one}
    yield "15 full and range", {"full": True, "minVersion": low}
    head = sorted(package.heads(package.default))[0]
    yield "16 selectedBundles", {"selectedBundles": [{"name": head}]}
    yield "16 selectedBundles and channels", {"selectedBundles": [{"name": head}], "channels": [{"name": channel}]}
    yield "16 selectedBundles and full", {"selectedBundles": [{"name": head}], "full": True}


def composed(program, store, catalog, select):
    """Returns what the program composes: entries by channel and the default channel by package, and its bundles."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump({"inputs": [{"catalog": catalog, "select": select}], "dependencies": "ignore"}, file)
        file.flush()
        done = subprocess.run([program, "compose", "--store", store, file.name], capture_output=True)
    if done.returncode != 0:
        if done.returncode != 1:
            raise SystemExit(f"compose ended with {done.returncode}: {done.stderr.decode()}")
        raise Refused(done.stderr.decode().strip())
    return read(done.stdout.splitlines())


def read(lines):
    packages = {}
    for line in lines:
        meta = json.loads(line)
        name = meta["name"] if meta["schema"] == "olm.package" else meta.get("package")
        if name:
            packages.setdefault(name, Package(name)).add(meta)
    return packages


def outcome(work):
    try:
        return work()
    except Refused as error:
        return str(error)


def main():
    program, store, catalog, lines, most = sys.argv[1:]
    with open(lines, "rb") as file:
        packages = read(file)
    counts, different = collections.Counter(), 0

    def compare(row, name, select, chosen):
        nonlocal different
        want = outcome(lambda: {each.name: promised(each, selection, full) for each, selection, full in chosen})

        def found():
            result = composed(program, store, catalog, select)
            for each in result.values():
                in_channels = set().union(*each.channels.values())
                if in_channels != set(each.versions):
                    raise SystemExit(f"{row}, {each.name}: its bundles are not those of its channels")
            return {
                each.name: ({key: set(entries) for key, entries in each.channels.items()}, each.default)
                for each in result.values()
            }

        got = outcome(found)
        refused = isinstance(want, str), isinstance(got, str)
        counts[row] += not refused[0]
        if refused[0] != refused[1] or (not any(refused) and want != got):
            different += 1
            print(f"{row}, {name}: {json.dumps(select)}\n  promised {want}\n  composed {got}")

    compare("01 catalog", "all", {}, [(each, None, False) for each in packages.values()])
    compare("02 catalog, full", "all", {"full": True}, [(each, None, True) for each in packages.values()])
    by_size = sorted(packages.values(), key=lambda each: (-len(each.channels), -len(each.versions), each.name))
    chosen = by_size[: int(most)]
    for package in chosen:
        for row, selection in rows(package):
            select = {"packages": [{"name": package.name, **selection}]}
            compare(row, package.name, select, [(package, selection, False)])
    refusing = {"14 range on both", "15 full and range", "16 selectedBundles and channels", "16 selectedBundles and full"}
    refusing.add("08 channel without defaultChannel")
    never = [row for row, count in counts.items() if not count and row not in refusing]
    for row in never:
        print(f"{row}: each of its selections is refused")
    print(f"{len(counts)} rows of the table, {len(chosen)} packages, {sum(counts.values())} selections with bundles")
    sys.exit(1 if different or never else 0)


if __name__ == "__main__":
    main()
