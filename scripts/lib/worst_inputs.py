"""Writes inputs that cost most for their size, each about so many bytes large.

    worst_inputs.py NAME FOLDER BYTES       a catalog as a folder of FBC; `changes` has its two states in `old` and `new`
    worst_inputs.py documents FOLDER BYTES  single documents, each as a catalog of its own
"""
import base64, json, math, os, random, sys

# Bytes of one bundle of `bundle` with its entry in a channel.
BUNDLE = 240


def package(name, channel="s"):
    return {"schema": "olm.package", "name": name, "defaultChannel": channel}


def channel(package, name, entries):
    return {"schema": "olm.channel", "name": name, "package": package, "entries": entries}


def bundle(package, at, *properties, version=None, **fields):
    value = {"packageName": package, "version": version or f"1.0.{at}"}
    properties = [{"type": "olm.package", "value": value}, *properties]
    return {"schema": "olm.bundle", "name": f"{package}.v{at}", "package": package, "image": f"q/{package}:{at}",
            "properties": properties, **fields}


def chain(package, count):
    return [{"name": f"{package}.v{at}", **({"replaces": f"{package}.v{at - 1}"} if at else {})} for at in range(count)]


def one_bundle(name, *properties, **fields):
    """A package of one bundle."""
    yield from (package(name), channel(name, "s", chain(name, 1)), bundle(name, 0, *properties, **fields))


def require(package, versions):
    return {"type": "olm.package.required", "value": {"packageName": package, "versionRange": versions}}


def kind(name, type="olm.gvk"):
    return {"type": type, "value": {"group": "g", "version": "v1", "kind": name}}


def catalog(package_name, count, entries, **more):
    yield package(package_name)
    yield channel(package_name, "s", entries)
    for at in range(count):
        yield bundle(package_name, at, **more)


def graph(size):
    """A channel whose number of paths doubles with each entry, and whose last entry skips all others."""
    count = size // 330
    entries = chain("p", count)
    for at in range(2, count):
        entries[at]["skips"] = [f"p.v{at - 2}"]
    entries[-1]["skips"] = [f"p.v{at}" for at in range(count - 1)]
    return catalog("p", count, entries)


def cycles(size):
    """A channel of which no entry is the head: each is replaced or skipped by another."""
    count = size // 330
    entries = [{"name": f"p.v{at}", "replaces": f"p.v{(at + 1) % count}", "skipRange": ">=1.0.0 <2.0.0"} for at in range(count)]
    return catalog("p", count, entries)


def heads(size):
    """A channel of which each entry is a head with a range of its own."""
    count = size // 320
    entries = [{"name": f"p.v{at}", "replaces": f"gone{at}", "skipRange": f">=0.0.1 <1.0.{at}"} for at in range(count)]
    return catalog("p", count, entries)


def long_range(size):
    """A chain whose last entry has a range with an alternative for each version."""
    count = size // 310
    entries = chain("p", count)
    entries[-1]["skipRange"] = " || ".join(f"1.0.{at}" for at in range(count))
    return catalog("p", count, entries)


def ranged(size):
    """A chain of which each entry has a range of 200 alternatives."""
    count = size // 3500
    entries = chain("p", count)
    for at in range(count):
        entries[at]["skipRange"] = " || ".join(f"1.0.{at * 7 % count}-{part}" for part in range(200))
    return catalog("p", count, entries)


def replaced(size):
    """A plain chain."""
    return catalog("p", size // 290, chain("p", size // 290))


def forks(size):
    """A channel in which two entries replace each."""
    count = size // 300
    entries = [{"name": f"p.v{at}", "replaces": f"p.v{(at - 1) // 2}"} for at in range(count)]
    return catalog("p", count, entries)


def many_channels(size):
    """As many channels as fit, of two entries each."""
    count = size // 110
    yield package("p", "s0")
    for at in range(count):
        yield channel("p", f"s{at}", chain("p", 2))
    for at in range(2):
        yield bundle("p", at)


def gone(size):
    """A chain, and the package after it: as many channels with other names and ranges, to none of whose heads a version leads."""
    count = size // 2 // 290
    other = [channel("p", f"t{at}", [{"name": f"q.v{at}", "skipRange": f">=1.0.{count}"}]) for at in range(count)]
    return {"old": catalog("p", count, chain("p", count)), "new": [package("p", "t0"), *other]}


def operators(size):
    """As many packages as fit, each with an update."""
    for at in range(size // 600):
        yield package(f"p{at}")
        yield channel(f"p{at}", "s", chain(f"p{at}", 2))
        for version in range(2):
            yield bundle(f"p{at}", version)


def installs(*rules):
    """A package of two bundles, of which each has its rules for a service account."""
    entries = chain("p", 2)
    yield package("p")
    yield channel("p", "s", entries)
    for at in range(2):
        permissions = [{"serviceAccountName": "a", "rules": rules[at]}]
        spec = {"version": f"1.0.{at}", "install": {"spec": {"clusterPermissions": permissions}}}
        operator = {"kind": "ClusterServiceVersion", "metadata": {"name": f"p.v{at}"}, "spec": spec}
        data = base64.b64encode(json.dumps(operator).encode()).decode()
        yield bundle("p", at, {"type": "olm.bundle.object", "value": {"data": data}})


def rules(size):
    """Two bundles with as many rules, each of which only one of them has. Their number has a limit of its own."""
    count = min(size // 300, 9500)
    return installs(*([{"verbs": ["get", f"{version}{at}"], "apiGroups": ["g"], "resources": [f"r{at}"]} for at in range(count)] for version in "ab"))


def urls(size):
    """Two bundles with as many patterns of URLs, of which each begins with another one."""
    count = math.isqrt(size)
    paths = ["/" + "a/" * at + "*" for at in range(count, 0, -1)]
    return installs([{"verbs": ["get"], "nonResourceURLs": paths}], [{"verbs": ["list"], "nonResourceURLs": paths}])


def channels(size):
    """As many channels as each of them has entries."""
    count = math.isqrt(size // 45)
    yield package("p", "s0")
    for at in range(count):
        yield channel("p", f"s{at}", chain("p", count))
    for at in range(count):
        yield bundle("p", at)


def versions(size):
    """Versions that differ in their last part only, as many as each has parts."""
    count = math.isqrt(size // 2)
    parts = ".".join(["a1"] * (count * 2 // 3))
    yield package("p")
    yield channel("p", "s", chain("p", count))
    for at in range(count):
        yield bundle("p", at, version=f"1.0.0-{parts}.{at}")


def alternatives(size):
    """A range of as many alternatives as there are bytes for, none of which one of as many versions meets."""
    yield from one_bundle("a", require("b", "||".join([">9.0.0"] * (size // 16))))
    yield from catalog("b", count := size // 2 // BUNDLE, chain("b", count))


def ranges(size):
    """As many different ranges as there are versions, of which only the last is met."""
    count = size // 2 // 200
    yield from one_bundle("a", *(require("b", f">1.0.{count} <9.0.{at}") for at in range(count)), require("b", "1.0.0"))
    yield from catalog("b", count, chain("b", count))


def required(size):
    """Each bundle of a package in ten channels is required by itself, the highest first."""
    count = size // 900
    yield from one_bundle("a", *(require("b", f"1.0.{at}") for at in reversed(range(count))))
    yield package("b", "s0")
    for at in range(10):
        yield channel("b", f"s{at}", chain("b", count))
    for at in range(count):
        yield bundle("b", at)


def chained(size):
    """Each package requires an API of the next one, so that a requirement shows only when another is met."""
    # As for `packages`: their number has a limit of its own.
    count = size // 850
    # Numbers of one width, so that byte order is the order of the chain, and the reverse of it.
    names = [f"p{at:06}" for at in range(count)]
    yield from one_bundle("a", kind("K000000", "olm.gvk.required"), kind(f"K{count - 1:06}", "olm.gvk.required"))
    for at, name in enumerate(names):
        following = [kind(f"K{at + 1:06}", "olm.gvk.required")] if at + 1 < count else []
        yield from one_bundle(name, kind(f"K{at:06}"), *following)


def any_of(size):
    """Constraints of which each alternative is met up to its last part, which nothing meets."""
    count = math.isqrt(size // 2 // 75)
    met = [{"package": {"packageName": "b", "versionRange": f"1.0.{at}"}} for at in range(count)]
    unmet = {"gvk": {"group": "g", "version": "v1", "kind": "None"}}
    alternatives = [{"all": {"constraints": [*met[at:], *met[:at], unmet]}} for at in range(count)]
    constraint = {"failureMessage": "none", "any": {"constraints": alternatives}}
    yield from one_bundle("a", {"type": "olm.constraint", "value": constraint})
    yield from catalog("b", size // 2 // BUNDLE, chain("b", size // 2 // BUNDLE))


def apis(size):
    """Every package provides all kinds that one requires in the last version."""
    count = math.isqrt(size // 90)
    kinds = [f"Kind{at}" for at in range(count)]
    yield from one_bundle("a", *(kind(name, "olm.gvk.required") for name in kinds), kind("None", "olm.gvk.required"))
    for at in range(count):
        yield from one_bundle(f"p{at}", *map(kind, kinds))


def images(size):
    """Bundles that all name the same images."""
    count = math.isqrt(size // 40)
    related = [{"name": "", "image": f"q/image:{at}"} for at in range(count)]
    return catalog("p", count, chain("p", count), relatedImages=related)


def words(size):
    """Packages whose heads have as many words as are read, none of them twice."""
    numbers = random.Random(1)
    for at in range(max(size // 24000, 1)):
        text = " ".join(f"{numbers.getrandbits(40):x}Word" for _ in range(1500))
        metadata = {"type": "olm.csv.metadata", "value": {"description": text, "displayName": text[:200], "keywords": text[:1000].split()}}
        yield from one_bundle(f"p{at}", metadata)


def camel(size):
    """Words of which each letter begins a part, in bundles as large as are read."""
    for at in range(size >> 20):
        text = " ".join(["aB" * 20] * 12000)
        yield from one_bundle(f"p{at}", {"type": "olm.csv.metadata", "value": {"description": text, "displayName": text}})


def kinds(size):
    """A bundle that provides as many APIs as fit."""
    return one_bundle("p", *(kind(f"Kind{at}") for at in range(size // 85)))


def small(size):
    """As many documents as fit, after one with many fields. Their number has a limit of its own."""
    yield package("p")
    yield {"schema": "x", "package": "p", **{f"f{at}": 0 for at in range(size // 20)}}
    for at in range(size // 2 // 33):
        yield {"schema": "x", "package": "p"}


def packages(size):
    """As many packages as fit. Their number has a limit of its own."""
    for at in range(size // 850):
        yield from one_bundle(f"p{at}", {"type": "x", "value": "x" * 480})


def large(size):
    """One package of large documents, which compress well."""
    count = max(size // 1_000_000, 16)
    return catalog("p", count, chain("p", count), padding="a" * (size // count))


def noise(size):
    """One package that no compressor makes small, and which takes long to publish."""
    count = size // 100_000
    yield package("p")
    yield channel("p", "s", chain("p", count))
    for at in range(count):
        yield bundle("p", at, padding=os.urandom(50_000).hex())


def changes(size):
    """A state and one in which each bundle has another field, in the opposite order."""
    old = list(graph(size))
    new = [{**meta, "x": 1} if meta["schema"] == "olm.bundle" else meta for meta in reversed(old)]
    return {"old": old, "new": new}


def repeated(size, start, part, end):
    return start + part * ((size - len(start) - len(end)) // len(part)) + end


def documents(size):
    return {
        "flow": repeated(size, b"x: [", b"1,", b"]\n"),
        "merge": repeated(size, b"<<: [", b"{},", b"]\n"),
        "keys": b"v: {" + b",".join(b"k%d" % number for number in range(size // 10)) + b"}\n",
        "json": repeated(size, b'{"a":[', b"{},", b"{}]}\n"),
    }


def lines(metas):
    return b"".join(json.dumps(meta, separators=(",", ":")).encode() + b"\n" for meta in metas)


def write(folder, content):
    os.makedirs(folder)
    if isinstance(content, bytes):
        name, content = "catalog.yaml", b"schema: olm.package\nname: good\n---\n" + content
    else:
        name, content = "catalog.json", lines(content)
    with open(f"{folder}/{name}", "wb") as file:
        file.write(content)


def main():
    name, folder, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    made = globals()[name](size)
    for part, content in made.items() if isinstance(made, dict) else [("", made)]:
        write(os.path.join(folder, part), content)


if __name__ == "__main__":
    main()
