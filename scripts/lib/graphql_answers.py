"""Compares the answers of two servers of GraphQL: catalogd and the mirror.

    graphql_answers.py compare CATALOGD MIRROR
    graphql_answers.py rates CATALOGD MIRROR

CATALOGD and MIRROR are the URLs of one catalog at each. Deviations are checked one by one: `DEVIATIONS` and the functions beside
it say how the mirror answers where catalogd does not.
"""

import http.client
import json
import statistics
import sys
import time
import urllib.parse

from graphql_queries import DOCUMENTED, TYPES, about_list, about_summary, read_types, with_errors


class Server:
    """One catalog at a server, over one connection."""

    def __init__(self, url: str):
        parts = urllib.parse.urlsplit(url)
        self.path = f"{parts.path}/api/v1/graphql"
        self.connection = http.client.HTTPConnection(parts.netloc, timeout=60)

    def post(self, body: bytes) -> tuple[int, bytes]:
        for is_last in (False, True):
            try:
                self.connection.request("POST", self.path, body, {"Content-Type": "application/json"})
                response = self.connection.getresponse()
                return response.status, response.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # catalogd closes a connection that was idle for five seconds.
                self.connection.close()
                if is_last:
                    raise
        raise AssertionError("one of both returns")

    def ask(self, query: str, **more) -> dict:
        status, answer = self.post(json.dumps({"query": query, **more}).encode())
        if status != 200:
            return {"status": status}
        # Both print the same float64, but one of them as a whole number.
        return json.loads(answer, parse_int=float)


def comparable(answer: dict) -> tuple:
    """What has to be equal: the data, with the summary in one order, and whether there are errors."""
    data = answer.get("data")
    for part in (data or {}).values():
        for schemas in part.values() if isinstance(part, dict) else ():
            if isinstance(schemas, list):
                schemas.sort(key=json.dumps)
    return answer.get("status"), data, bool(answer.get("errors"))


# Bodies that are no query, with the status of both.
BODIES = [
    (b"", 400), (b"{", 400), (b"[]", 400), (b'"{a}"', 400), (b"{}", 400), (b'{"query":""}', 400), (b'{"query":null}', 400),
    (b'{"query":1}', 400), (b'{"query":"' + b"a" * 100_001 + b'"}', 400), (b'{"query":"{__typename}","extensions":{}}', 200),
]

DEEP_INTROSPECTION = "{__schema{types{fields{args{type{ofType{ofType{ofType{ofType{ofType{name}}}}}}}}}}}"
MANY_SPREADS = "{a" + " ...f" * 5001 + "} fragment f on Query {__typename}"

# Queries that one of them refuses: (reason, query, catalogd has errors, the mirror has errors).
DEVIATIONS = [
    ("introspection has a limit of values instead of depth, because tools ask deeper", DEEP_INTROSPECTION, True, False),
    ("a fragment is resolved wherever it is spread, so that has a limit", "{__typename" + MANY_SPREADS[2:], False, True),
    ("a fragment in a list needs no type", "{summary{schemas{... {name}}}}", True, False),
    ("names and packages are filters of the mirror", '{olmbundles(package: "none", name: "none"){name}}', True, False),
]


def compare(catalogd: Server, mirror: Server) -> list[str]:
    failures = []
    roots, types = read_types(catalogd.ask(TYPES))
    own = read_types(mirror.ask(TYPES))
    if (roots, types) != own:
        failures.append(f"types differ: {(roots, types)} and {own}")
        return failures
    totals = {item["name"]: item["totalObjects"] for item in catalogd.ask(about_summary()[0])["data"]["summary"]["schemas"]}
    queries = about_summary() + DOCUMENTED
    for root, name in roots.items():
        total = next(count for schema, count in totals.items() if root == "".join(filter(str.isalnum, schema.lower())) + "s")
        queries += about_list(root, name, types, total)
    root, name = next(iter(sorted(roots.items())))
    field = next(field for field, of in types[name] if of == "scalar")
    queries += with_errors(root, name, field)
    for query in queries:
        expected, found = comparable(catalogd.ask(query)), comparable(mirror.ask(query))
        if expected != found:
            failures.append(difference(query, expected, found))
    failures += lists_of_scalars(catalogd, mirror, roots, types)
    failures += bodies(catalogd, mirror) + deviations(catalogd, mirror)
    failures += by_package(catalogd, mirror, roots)
    print(f"{len(queries)} queries about {len(roots)} lists")
    return failures


def difference(query: str, expected: tuple, found: tuple) -> str:
    for one, other in zip(walk(expected), walk(found)):
        if one != other:
            return f"{query[:150]}\n  {str(one)[:300]}\n  {str(other)[:300]}"
    return f"{query[:150]}\n  one answer has more than the other"


def walk(value, path=()):
    if isinstance(value, dict):
        for key in sorted(value):
            yield from walk(value[key], (*path, key))
    elif isinstance(value, (list, tuple)):
        yield path, len(value)
        for number, item in enumerate(value):
            yield from walk(item, (*path, number))
    else:
        yield path, value


def lists_of_scalars(catalogd: Server, mirror: Server, roots, types) -> list[str]:
    """catalogd has null with an error for each list of scalars that is not null itself. The mirror has the list."""
    failures = []
    for root, name in roots.items():
        for field in (field for field, of in types[name] if of == "scalars"):
            query = f"{{{root}{{{field}}}}}"
            expected, found = catalogd.ask(query), mirror.ask(query)
            errors = len(expected.get("errors", []))
            lists = sum(isinstance(item[field], list) for item in found["data"][root])
            # A value that is no list is an error of both.
            if any(item[field] for item in expected["data"][root]) or errors != lists + len(found.get("errors", [])):
                failures.append(f"{query}: {errors} errors of catalogd for {lists} lists")
    return failures


def bodies(catalogd: Server, mirror: Server) -> list[str]:
    found = [(body[:40], status, catalogd.post(body)[0], mirror.post(body)[0]) for body, status in BODIES]
    return [f"{body}: {one} and {two} instead of {status}" for body, status, one, two in found if (one, two) != (status, status)]


def deviations(catalogd: Server, mirror: Server) -> list[str]:
    failures = []
    for reason, query, *expected in DEVIATIONS:
        found = [bool(server.ask(query).get("errors")) for server in (catalogd, mirror)]
        if found != expected:
            failures.append(f"{reason}: errors are {found} instead of {expected}")
    named = "query a {__typename} query b($name: String!) {__type(name: $name){name}}"
    found = mirror.ask(named, operationName="b", variables={"name": "Query"})
    if found != {"data": {"__type": {"name": "Query"}}}:
        failures.append(f"operationName and variables: {found}")
    return failures


def pages(server: Server, root: str, fields: str):
    offset = 0
    while page := server.ask(f"{{{root}(offset: {offset}){{{fields}}}}}")["data"][root]:
        yield from page
        offset += len(page)


def by_package(catalogd: Server, mirror: Server, roots) -> list[str]:
    """A package by name is what the pages of catalogd have of it."""
    if "olmbundles" not in roots:
        return []
    failures = []
    everything = list(pages(catalogd, "olmbundles", "name package"))
    packages = sorted({bundle["package"] for bundle in everything})
    for package in packages[:: max(len(packages) // 20, 1)]:
        argument = json.dumps(package)
        expected = [bundle for bundle in everything if bundle["package"] == package]
        found = mirror.ask(f"{{olmbundles(package: {argument}){{name package}} olmpackages(package: {argument}){{name}}}}")["data"]
        if found["olmbundles"] != expected[:100] or found["olmpackages"] != [{"name": package}]:
            failures.append(f"package {package}: {found}")
        name = json.dumps(expected[-1]["name"])
        one = mirror.ask(f"{{olmbundles(name: {name}, package: {argument}){{name package}}}}")["data"]["olmbundles"]
        if one != expected[-1:]:
            failures.append(f"bundle {name}: {one}")
    return failures


def rates(catalogd: Server, mirror: Server) -> None:
    """Prints medians of the time for some questions, in milliseconds. A new alias each time keeps the mirror's cache out of it."""
    questions = {
        "summary": "summary{totalSchemas schemas{name totalObjects}}",
        "names of 100 bundles": "olmbundles(limit: 100){name package}",
        "properties of 100 bundles": f"olmbundles(limit: 100){{name package properties{{type value}}}}",
    }
    for name, field in questions.items():
        times = [median(server, lambda number, field=field: f"{{a{number}: {field}}}") for server in (catalogd, mirror)]
        cached = median(mirror, lambda _, field=field: f"{{{field}}}")
        print(f"{name}: catalogd {times[0]:.2f} ms, mirror {times[1]:.2f} ms ({times[0] / times[1]:.1f}), cached {cached:.2f} ms")
    bundles = [bundle["package"] for bundle in pages(mirror, "olmbundles", "package")]
    package = bundles[len(bundles) // 2]
    argument = json.dumps(package)
    begin = time.perf_counter()
    count = sum(bundle["package"] == package for bundle in pages(catalogd, "olmbundles", "name package"))
    paged = (time.perf_counter() - begin) * 1000
    alone = median(mirror, lambda number: f"{{a{number}: olmbundles(package: {argument}){{name package}}}}")
    print(f"{count} bundles of {package}: catalogd {paged:.0f} ms in pages, mirror {alone:.2f} ms ({paged / alone:.0f})")


def median(server: Server, query, rounds: int = 30) -> float:
    times = []
    for number in range(rounds):
        begin = time.perf_counter()
        answer = server.ask(query(number))
        times.append((time.perf_counter() - begin) * 1000)
        if "errors" in answer:
            sys.exit(f"errors: {answer['errors'][:1]}")
    return statistics.median(times)


def main() -> None:
    servers = [Server(url) for url in sys.argv[2:4]]
    if sys.argv[1] == "rates":
        rates(*servers)
        return
    failures = compare(*servers)
    for failure in failures[:20]:
        print(failure)
    if failures:
        sys.exit(f"{len(failures)} differences")


if __name__ == "__main__":
    main()
