#!/usr/bin/env python3
"""Accidents, updates and renderings of real catalogs: what a mirror holds back, and what it publishes.

usage: accidents.py CATALOG_MIRROR SERIES OTHER FOLDER UPDATES

SERIES has a catalog and its updates (000/configs, 001/configs ..., steps.json), OTHER the packages of another version of it.
UPDATES is the number of updates that are made in the shape of a vendor's index. Prints a line `ok ...` or `not ok ...` for each case.
"""
import copy, json, pathlib, random, shutil, subprocess, sys

ALL = {"hold": "all"}
DEFAULT = {}

# Rules that no update of a vendor breaks. The others hold what a vendor does on purpose: of the forty real updates two retire a package,
# and one a channel.
HARMLESS = ["default", "bundle", "head", "validation", "many-deprecated"]


class Mirror:
    """A store, and a folder whose content is polled."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.source = self.folder / "source"
        self.store = self.folder / "store"
        self.folder.mkdir(parents=True)

    def write(self, catalog):
        shutil.rmtree(self.source, ignore_errors=True)
        self.source.mkdir()
        for package, metas in catalog.items():
            folder = self.source / package
            folder.mkdir()
            (folder / "catalog.json").write_text("\n".join(map(json.dumps, metas)) + "\n")

    def poll(self, settings):
        """Returns the outcome and the error of a poll."""
        config = self.folder / "catalogs.yaml"
        catalog = {"name": "c", "source": f"dir:{self.source}", **settings}
        config.write_text(json.dumps({"catalogs": [catalog]}))
        command = [self.program, "poll", "--json", "--store", self.store, "--config", config]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode not in (0, 1) or not ran.stdout:
            return "none", ran.stderr
        report = json.loads(ran.stdout)[0]
        return report["outcome"], report["error"] or ""

    def restart(self, catalog):
        """Begins anew with a published catalog."""
        shutil.rmtree(self.store, ignore_errors=True)
        self.write(catalog)
        outcome, error = self.poll(DEFAULT)
        assert outcome == "published", error


# Properties with the texts of an operator: most of the bytes, and no rule is about them.
TEXTS = {"olm.csv.metadata", "olm.bundle.object"}


def rendered(program, folder):
    """Returns the metas of a folder by their package, without long texts."""
    ran = subprocess.run([program, "render", folder], capture_output=True, text=True, check=True)
    catalog = {}
    for line in ran.stdout.splitlines():
        meta = json.loads(line)
        meta.pop("icon", None)
        if meta["schema"] == "olm.bundle":
            meta["properties"] = [found for found in meta["properties"] if found["type"] not in TEXTS]
        package = meta["name"] if meta["schema"] == "olm.package" else meta["package"]
        catalog.setdefault(package, []).append(meta)
    return catalog


def of(metas, schema):
    return [meta for meta in metas if meta["schema"] == schema]


def head(channel):
    """Returns the first entry that no other one replaces or skips."""
    updated = set()
    for entry in channel["entries"]:
        updated.add(entry.get("replaces"))
        updated.update(entry.get("skips") or [])
    heads = [entry["name"] for entry in channel["entries"] if entry["name"] not in updated]
    return heads[0] if heads else channel["entries"][0]["name"]


def version_property(bundle):
    return next(found["value"] for found in bundle["properties"] if found["type"] == "olm.package")


def without_head(metas):
    """Each channel of more than one entry loses its head."""
    for channel in of(metas, "olm.channel"):
        if len(channel["entries"]) > 1:
            last = head(channel)
            channel["entries"] = [entry for entry in channel["entries"] if entry["name"] != last]
    return metas


def half_of_bundles(metas):
    for channel in of(metas, "olm.channel"):
        channel["entries"] = channel["entries"][: (len(channel["entries"]) + 1) // 2]
    kept = {entry["name"] for channel in of(metas, "olm.channel") for entry in channel["entries"]}
    return [meta for meta in metas if meta["schema"] != "olm.bundle" or meta["name"] in kept]


def other_images(metas):
    for bundle in of(metas, "olm.bundle"):
        bundle["image"] = "registry.example/other" + bundle["image"][bundle["image"].index("/") :]
    return metas


def other_versions(metas):
    for bundle in of(metas, "olm.bundle"):
        version_property(bundle)["version"] += "-other"
    return metas


def without_ways(metas):
    for channel in of(metas, "olm.channel"):
        for entry in channel["entries"]:
            for field in ("replaces", "skips", "skipRange"):
                entry.pop(field, None)
    return metas


def renamed_channels(metas):
    for channel in of(metas, "olm.channel"):
        channel["name"] += "-renamed"
    for package in of(metas, "olm.package"):
        package["defaultChannel"] += "-renamed"
    return metas


def deprecated(metas):
    name = of(metas, "olm.package")[0]["name"]
    entries = [{"reference": {"schema": "olm.package"}, "message": "Use another one."}]
    rest = [meta for meta in metas if meta["schema"] != "olm.deprecations"]
    return rest + [{"schema": "olm.deprecations", "package": name, "entries": entries}]


def without_default_channel(metas):
    for package in of(metas, "olm.package"):
        package["defaultChannel"] = "none"
    return metas


def has_default_channel(metas):
    channels = {channel["name"] for channel in of(metas, "olm.channel")}
    return of(metas, "olm.package")[0]["defaultChannel"] in channels


def rendered_anew(metas, number):
    """Other properties, in another order, as another program renders the same bundles."""
    for bundle in of(metas, "olm.bundle"):
        bundle["properties"] = [{"type": "example.rendered", "value": number}, *reversed(bundle["properties"])]
        bundle.setdefault("relatedImages", []).append({"name": f"helper-{number}", "image": "registry.example/helper:v1"})
    for channel in of(metas, "olm.channel"):
        channel["entries"].reverse()
    return metas


def new_version(metas, number):
    """A vendor's release: a bundle that replaces the head of a channel, or of all channels with that head."""
    channel = random.choice(of(metas, "olm.channel"))
    last = head(channel)
    old = next((bundle for bundle in of(metas, "olm.bundle") if bundle["name"] == last), None)
    if old is None:
        return metas
    bundle = copy.deepcopy(old)
    cores = [version_property(bundle)["version"].split("+")[0].split("-")[0].split(".") for bundle in of(metas, "olm.bundle")]
    major, minor, _ = version_property(old)["version"].split("+")[0].split("-")[0].split(".")
    # Above all others: a version is released once.
    version = f"{major}.{minor}.{max(int(core[2]) for core in cores) + 1}"
    name = f"{last.split('.v')[0]}.v{version}-{number}"
    version_property(bundle)["version"] = version
    bundle["name"] = name
    bundle["image"] = f"registry.example/released@sha256:{number:064x}"
    for updated in of(metas, "olm.channel"):
        if head(updated) == last:
            updated["entries"].append({"name": name, "replaces": last})
    return metas + [bundle]


def vendor_update(catalog, number):
    """Up to a quarter of the packages get releases; now and then a channel or a package is new, or a version is deprecated."""
    catalog = copy.deepcopy(catalog)
    names = random.sample(sorted(catalog), random.randint(1, max(1, len(catalog) // 4)))
    for name in names:
        for _ in range(random.randint(1, 3)):
            catalog[name] = new_version(catalog[name], number)
    name = names[0]
    if number % 7 == 0:
        channel = copy.deepcopy(of(catalog[name], "olm.channel")[0])
        channel["name"] += f"-{number}"
        catalog[name].append(channel)
    if number % 11 == 0:
        package = f"new-{number}"
        valid = next(name for name in sorted(catalog) if has_default_channel(catalog[name]))
        catalog[package] = copy.deepcopy(catalog[valid])
        for meta in catalog[package]:
            if meta["schema"] == "olm.package":
                meta["name"] = package
            else:
                meta["package"] = package
            if meta["schema"] == "olm.bundle":
                version_property(meta)["packageName"] = package
    if number % 13 == 0:
        oldest = of(catalog[name], "olm.channel")[0]["entries"][0]["name"]
        entries = [{"reference": {"schema": "olm.bundle", "name": oldest}, "message": "Too old."}]
        catalog[name] = [meta for meta in catalog[name] if meta["schema"] != "olm.deprecations"]
        catalog[name].append({"schema": "olm.deprecations", "package": name, "entries": entries})
    return catalog


def accidents(catalog, other):
    """Returns (name, content, does a default rule hold it) of each accident."""
    names = sorted(catalog)
    deep = max(names, key=lambda name: len(of(catalog[name], "olm.bundle")))

    def changed(change, packages):
        return {name: change(copy.deepcopy(metas)) if name in packages else metas for name, metas in catalog.items()}

    def only(packages):
        return {name: catalog[name] for name in packages}

    mixed = {**catalog, **{name: metas for name, metas in other.items() if name in catalog}}
    swapped = dict(catalog)
    for name, source in zip(names[::2], names[1::2]):
        swapped[name] = of(catalog[name], "olm.package") + [
            {**meta, "package": name} for meta in catalog[source] if meta["schema"] != "olm.package"
        ]
        of(swapped[name], "olm.package")[0]["defaultChannel"] = of(catalog[source], "olm.package")[0]["defaultChannel"]
    renamed = dict(catalog)
    renamed["renamed"] = [
        {**meta, "name": "renamed"} if meta["schema"] == "olm.package" else {**meta, "package": "renamed"} for meta in renamed.pop(deep)
    ]
    third = names[: (len(names) + 2) // 3]
    # Many real packages have a default channel that is none already.
    valid = next(name for name in names if has_default_channel(catalog[name]))
    return [
        ("the content of another version", other, True),
        ("packages of another version among the others", mixed, False),
        ("half of the packages gone", only(names[: len(names) // 2]), True),
        ("no packages", {}, True),
        ("a quarter of the packages gone", only(names[len(names) // 4 :]), False),
        ("half of all bundles gone", changed(half_of_bundles, names), True),
        ("other images of all bundles", changed(other_images, names), True),
        ("other images in two packages", changed(other_images, names[:2]), True),
        ("other images in one package", changed(other_images, [deep]), False),
        ("other versions of all bundles", changed(other_versions, names), True),
        ("other versions in one package", changed(other_versions, [deep]), False),
        ("all heads back", changed(without_head, names), True),
        ("heads back in one package", changed(without_head, [deep]), False),
        ("all ways lost", changed(without_ways, names), True),
        ("ways lost in one package", changed(without_ways, [deep]), False),
        ("all channels renamed", changed(renamed_channels, names), True),
        ("channels of a third renamed", changed(renamed_channels, third), True),
        ("channels of one package renamed", changed(renamed_channels, [deep]), False),
        ("a package renamed", renamed, False),
        ("all packages deprecated", changed(deprecated, names), False),
        ("the content of half of the packages swapped", swapped, True),
        ("a default channel that is none", changed(without_default_channel, [valid]), False),
    ]


def report(is_ok, text, detail=""):
    print(f"{'ok' if is_ok else 'not ok'} {text}" + (f" ({detail[:300]})" if not is_ok else ""), flush=True)


def judge(mirror, name, before, content, settings, expected):
    """Checks whether content is held over the content before."""
    mirror.restart(before)
    mirror.write(content)
    outcome, error = mirror.poll(settings)
    is_held = outcome == "refused"
    rules = "all" if settings else "the default"
    verb = "held" if expected else "published"
    is_ok = is_held == expected and outcome in ("refused", "published")
    report(is_ok, f"{name}: {verb} by {rules} rules", f"{outcome} {error}")
    if is_held:
        print(f"  {error[:400]}", flush=True)


def main():
    program, series, other_folder, folder, updates = sys.argv[1:]
    random.seed(62)
    series = pathlib.Path(series)
    steps = json.loads((series / "steps.json").read_text())
    mirror = Mirror(program, folder)

    # The real updates, as they came.
    source = mirror.source
    shutil.copytree(series / "000" / "configs", source)
    outcome, error = mirror.poll(ALL)
    report(outcome == "published", "the catalog is published", error)
    held = []
    for step in steps[1:]:
        shutil.copytree(series / f"{step['step']:03}" / "configs", source, dirs_exist_ok=True)
        for path in step["removed"]:
            (source / path).unlink()
            if not any((source / path).parent.iterdir()):
                (source / path).parent.rmdir()
        outcome, error = mirror.poll({"hold": HARMLESS})
        if outcome == "refused":
            held.append(f"{step['step']}: {error}")
    report(not held, f"0 of {len(steps) - 1} real updates are held", " ".join(held))

    newest = rendered(program, source)
    oldest = rendered(program, series / "000" / "configs")
    other = rendered(program, other_folder)
    catalog = newest

    # Accidents.
    deep = max(sorted(catalog), key=lambda name: len(of(catalog[name], "olm.bundle")))
    entries = of(catalog[deep], "olm.channel")[0]["entries"]
    first = min(entries, key=lambda entry: len(entry.get("replaces") or ""))["name"]
    version = version_property(next(bundle for bundle in of(catalog[deep], "olm.bundle") if bundle["name"] == first))["version"]
    installed = mirror.folder / "installed"
    installed.write_text(f"{deep} {version}\n")
    rows = [(name, catalog, content, by_default) for name, content, by_default in accidents(catalog, other)]
    same = set(catalog) & set(other)
    of_same = [{name: metas for name, metas in version.items() if name in same} for version in (other, catalog)]
    rows.append(("the same packages of another version", *of_same, True))
    rows.append(("an older index again", catalog, oldest, None))
    for name, before, content, by_default in rows:
        for settings, expected in [({**ALL, "holdInstalled": str(installed)}, True), (DEFAULT, by_default)]:
            if expected is not None:
                judge(mirror, name, before, content, settings, expected)

    # Renderings of all packages anew.
    mirror.restart(catalog)
    held = []
    for number in range(1, 21):
        catalog = {name: rendered_anew(copy.deepcopy(metas), number) for name, metas in catalog.items()}
        mirror.write(catalog)
        outcome, error = mirror.poll(ALL)
        if outcome != "published":
            held.append(f"{number}: {outcome} {error}")
    report(not held, "0 of 20 renderings of all packages anew are held", " ".join(held))

    # Updates in the shape of a vendor's index.
    catalog = newest
    mirror.restart(catalog)
    held = []
    for number in range(1, int(updates) + 1):
        catalog = vendor_update(catalog, number)
        mirror.write(catalog)
        outcome, error = mirror.poll({"hold": HARMLESS})
        if outcome != "published":
            held.append(f"{number}: {outcome} {error}")
    report(not held, f"0 of {updates} updates in the shape of a vendor's index are held", " ".join(held))


main()
