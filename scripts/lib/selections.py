#!/usr/bin/env python3
"""Compares selections of a published catalog with what oc-mirror v2's acceptance table promises, computed here on its own.

selections.py PROGRAM STORE CATALOG LINES PACKAGES [FILTER]: LINES has the canonical lines of CATALOG in STORE, and PACKAGES is the
number of packages to try, those with the most channels and bundles first. FILTER is oc-mirror-filter, which selects with the library
of oc-mirror v2: what it takes is taken too, but for a channel that opm refuses to serve. Prints each difference. Fails if there is
one, or if a row of the table was never answered with bundles. Rows that must be refused are in
shared/operators/compose/tests/it/rows.txt.
"""

import collections
import json
import re
import subprocess
import sys
import tempfile

SEMVER = re.compile(r"^(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$")


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
        self.name, self.default, self.channels, self.versions, self.properties = name, None, {}, {}, {}

    def add(self, meta):
        if meta["schema"] == "olm.package":
            self.default = meta.get("defaultChannel")
        elif meta["schema"] == "olm.channel":
            self.channels[meta["name"]] = {entry["name"]: entry for entry in meta["entries"]}
        elif meta["schema"] == "olm.bundle":
            self.properties[meta["name"]] = meta.get("properties", [])
            values = [prop["value"] for prop in self.properties[meta["name"]] if prop["type"] == "olm.package"]
            self.versions[meta["name"]] = values[0]["version"] if values else None

    def skipped(self, channel, kept):
        return {skip for name in kept for skip in self.channels[channel][name].get("skips") or []}

    def heads(self, channel, kept):
        replaced = {self.channels[channel][name].get("replaces") for name in kept}
        return set(kept) - replaced - self.skipped(channel, kept)

    def chain(self, channel, kept, ends=()):
        """Returns the entries on the way of `replaces` from the head, up to one that is not kept or the first of `ends`."""
        way, at = [], min(self.heads(channel, kept), default=None)
        while at in kept and at not in way:
            way.append(at)
            at = None if at in ends else self.channels[channel][at].get("replaces")
        return way

    def in_range(self, channel, low, high):
        # A pre-release is only in a range that names one, as Masterminds/semver has it.
        named = any(bound and not bound[1] for bound in (low, high))

        def fits(name):
            key = version_key(self.versions.get(name))
            return key is not None and (low is None or low <= key) and (high is None or key <= high) and (named or key[1])

        return {name for name in self.channels[channel] if fits(name)}

    def connected(self, channel, kept):
        """Returns the kept entries with the shortest part of the way of `replaces` from the head that has or skips all of them."""
        way = self.chain(channel, self.channels[channel])
        covered = [kept & (self.skipped(channel, way[place:]) | set(way[place:])) for place in range(len(way))]
        needed = [name for name, below in zip(way, covered) if below]
        highest = max((place for place, below in enumerate(covered) if below == covered[0]), default=0)
        return kept | set(needed[highest:])

    def is_valid(self, channel, kept):
        """Returns whether entries are a valid channel: all of it, or one head, from which all others are reached or skipped."""
        if kept == set(self.channels[channel]):
            return True
        skipped = self.skipped(channel, kept)
        reached = skipped.union(self.chain(channel, kept, skipped))
        return kept <= set(self.versions) and len(self.heads(channel, kept)) == 1 and kept <= reached


def promised(package, selection):
    """Returns the promised entries by channel and the default channel, None if there is no valid result."""
    named = {channel["name"]: channel for channel in selection.get("channels", [])}
    bundles = {bundle["name"] for bundle in selection.get("selectedBundles", [])}
    result = {}
    for channel in named or package.channels:
        entries = set(package.channels[channel])
        low, high = (version_key(named.get(channel, {}).get(key) or selection.get(key)) for key in ("minVersion", "maxVersion"))
        if bundles:
            kept = bundles & entries
        elif selection.get("full"):
            kept = entries
        elif low or high:
            kept = package.in_range(channel, low, high)
            kept = kept if package.is_valid(channel, kept) else package.connected(channel, kept)
        else:
            kept = package.heads(channel, entries)
            if len(kept) != 1:
                return None
        # A channel goes if nothing of it is taken, but not one that the selection names with a range of its own.
        if kept and package.is_valid(channel, kept):
            result[channel] = kept
        elif kept or len(named.get(channel, {})) > 1:
            return None
    default = selection.get("defaultChannel", package.default)
    # Not a rule of oc-mirror, which refuses: a channel that alone is left becomes the default.
    if default not in result and named and len(result) == 1 and "defaultChannel" not in selection:
        (default,) = result
    return (result, default) if default in result else None


def rows(package):
    """Yields a name and a selection for each row of the table that needs a package."""
    channel = max(package.channels, key=lambda name: (len(package.channels[name]), name))
    other = min(package.channels, key=lambda name: (name == channel, name))
    both = [{"name": name} for name in sorted({channel, other, package.default})]
    versions = filter(version_key, map(package.versions.get, package.channels[channel]))
    in_channel = sorted(versions, key=lambda version: (version_key(version), version))
    if not in_channel:
        return
    third = len(in_channel) // 3
    low, high = {"minVersion": in_channel[third]}, {"maxVersion": in_channel[max(third, 2 * third - 1)]}
    one = {"defaultChannel": channel}
    yield "03 package", {}
    yield "04 package, full", {"full": True}
    yield "05 package, min", low
    yield "06 package, max", high
    yield "07 package, min and max", low | high
    yield "08 channel, defaultChannel", {"channels": [{"name": channel}], **one}
    yield "09 channel, full", {"channels": [{"name": channel}], "full": True, **one}
    yield "10 several channels", {"channels": both}
    yield "11 channel, min", {"channels": [{"name": channel, **low}], **one}
    yield "12 channel, max", {"channels": [{"name": channel, **high}], **one}
    yield "13 channel, min and max", {"channels": [{"name": channel, **low, **high}], **one}
    yield "14 channels, range on package", {"channels": both, **low, **high}
    head = min(package.heads(package.default, package.channels[package.default]))
    yield "16 selectedBundles", {"selectedBundles": [{"name": head}]}


def read(lines):
    packages = {}
    for line in lines:
        meta = json.loads(line)
        name = meta["name"] if meta["schema"] == "olm.package" else meta.get("package")
        if name:
            packages.setdefault(name, Package(name)).add(meta)
    return packages


def composed(program, store, catalog, select):
    """Returns what the program composes, by package as `promised` does, None if it refuses."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump({"inputs": [{"catalog": catalog, "select": select}], "dependencies": "ignore"}, file)
        file.flush()
        done = subprocess.run([program, "compose", "--store", store, file.name], capture_output=True)
    if done.returncode == 1:
        return None
    if done.returncode != 0:
        raise SystemExit(f"compose ended with {done.returncode}: {done.stderr.decode()}")
    packages = read(done.stdout.splitlines())
    for each in packages.values():
        if set().union(*each.channels.values()) != set(each.versions):
            raise SystemExit(f"{select}, {each.name}: its bundles are not those of its channels")
    return {each.name: ({name: set(entries) for name, entries in each.channels.items()}, each.default) for each in packages.values()}


def version_range(selection):
    """Returns a range in the words of oc-mirror, as an entry of its configuration."""
    bounds = [sign + selection[key] for sign, key in ((">=", "minVersion"), ("<=", "maxVersion")) if key in selection]
    return {"versionRange": " ".join(bounds)} if bounds else {}


def filter_question(select):
    """Returns a selection as oc-mirror-filter reads it."""
    packages = []
    for selection in select["packages"]:
        package = {"name": selection["name"], "bundles": selection.get("selectedBundles", []), **version_range(selection)}
        package["channels"] = [{"name": channel["name"], **version_range(channel)} for channel in selection.get("channels", [])]
        packages.append({"defaultChannel": selection.get("defaultChannel", ""), **package})
    return {"full": any(selection.get("full") for selection in select["packages"]), "packages": packages}


def filtered(program, lines, selects):
    """Returns the answer of oc-mirror-filter to each selection."""
    text = "\n".join(json.dumps(filter_question(select)) for select in selects)
    done = subprocess.run([program, lines], input=text, capture_output=True, text=True, check=True)
    answers = map(json.loads, done.stdout.splitlines())
    return {json.dumps(select): answer for select, answer in zip(selects, answers, strict=True)}


def is_as_filtered(package, answer, got):
    """Returns whether a composition is what oc-mirror's filter takes, where that makes a catalog that opm serves."""
    if "error" in answer:
        # Where only the default channel is missing, a channel that alone is left becomes the default.
        return got is None or len(got[package.name][0]) == 1
    channels = {name: set(entries) for name, entries in answer["channels"].get(package.name, {}).items()}
    # The filter leaves a channel without entries behind where a range has one version.
    channels = {name: kept for name, kept in channels.items() if kept}
    if got is None:
        return not all(package.is_valid(name, kept) for name, kept in channels.items())
    return got[package.name] == (channels, answer["defaults"][package.name])


def main():
    program, store, catalog, lines, most, *filters = sys.argv[1:]
    with open(lines, "rb") as file:
        packages = read(file)
    by_size = sorted(packages.values(), key=lambda each: (-len(each.channels), -len(each.versions), each.name))
    asked = [("01 catalog", {}, packages.values()), ("02 catalog, full", {"full": True}, packages.values())]
    for package in by_size[: int(most)]:
        asked += [(row, {"packages": [{"name": package.name, **selection}]}, [package]) for row, selection in rows(package)]
    counts, different = collections.Counter(), 0
    answers = filtered(filters[0], lines, [select for _, select, _ in asked if "packages" in select]) if filters else {}
    for row, select, chosen in asked:
        want = {each.name: promised(each, select.get("packages", [select])[0]) for each in chosen}
        if None in want.values():
            want = None
        got = composed(program, store, catalog, select)
        counts[row] += want is not None
        if want != got:
            different += 1
            print(f"{row}: {json.dumps(select)}\n  promised {want}\n  composed {got}")
        answer = answers.get(json.dumps(select))
        if answer and not is_as_filtered(chosen[0], answer, got):
            different += 1
            print(f"{row}: {json.dumps(select)}\n  filtered {answer}\n  composed {got}")
    never = [row for row, count in counts.items() if not count]
    for row in never:
        print(f"{row}: each of its selections is refused")
    print(f"{len(counts)} rows of the table, {len(asked)} selections, {sum(counts.values())} of them with bundles")
    print(f"{len(answers)} selections were compared with oc-mirror's filter")
    sys.exit(1 if different or never else 0)


if __name__ == "__main__":
    main()
