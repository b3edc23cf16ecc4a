"""Queries of GraphQL about a catalog, made from its types."""

# Types of values, by the fields of each type: (field, kind), where kind is scalar, scalars or the name of a type.
Types = dict[str, list[tuple[str, str]]]

TYPES = """{__schema{queryType{fields{name type{ofType{name}}}}
  types{name kind fields{name type{kind ofType{name kind}}}}}}"""


def read_types(answer: dict) -> tuple[dict[str, str], Types]:
    """The types of the lists of the root, and all types of objects."""
    schema = answer["data"]["__schema"]
    roots = {field["name"]: field["type"]["ofType"]["name"] for field in schema["queryType"]["fields"] if field["type"]["ofType"]}
    types = {}
    for of in schema["types"]:
        if of["kind"] == "OBJECT" and not of["name"].startswith("__"):
            types[of["name"]] = sorted((field["name"], kind(field["type"])) for field in of["fields"])
    return roots, types


def kind(of: dict) -> str:
    if of["kind"] != "LIST":
        return "scalar"
    return of["ofType"]["name"] if of["ofType"]["kind"] == "OBJECT" else "scalars"


def everything(types: Types, name: str) -> str:
    """All fields of a type, except lists of scalars, for which catalogd has no values."""
    fields = []
    for field, of in types[name]:
        if of == "scalar":
            fields.append(field)
        elif of != "scalars" and any(inner == "scalar" for _, inner in types[of]):
            fields.append(f"{field}{{{everything(types, of)}}}")
    return " ".join(fields)


def about_summary() -> list[str]:
    return [
        "{summary{totalSchemas schemas{name totalObjects totalFields}}}",
        "{summary{totalSchemas}}",
        "query named {summary{schemas{name}}}",
        "{a: summary{n: totalSchemas} b: summary{s: schemas{__typename count: totalObjects}}}",
        "{summary{...f}} fragment f on CatalogSummary {totalSchemas schemas{...g}} fragment g on SchemaSummary {totalFields}",
        "{__typename summary{__typename}}",
        "{summary{totalSchemas @include(if: false) schemas @skip(if: false){name}}}",
    ]


def about_list(root: str, name: str, types: Types, total: int) -> list[str]:
    """Pages, fields, aliases and fragments of one list of the root."""
    first = next(field for field, of in types[name] if of == "scalar")
    whole = everything(types, name)
    queries = [f"{{{root}{{{whole}}}}}", f"{{{root}{{__typename {first}}}}}", f"{{ #comment\n {root},{{ {first}, }} }}"]
    for limit in (1, 5, 99, 100, 101, 100000, 0, -1):
        queries.append(f"{{{root}(limit: {limit}){{{whole}}}}}")
    for offset in (1, total // 2, max(total - 1, 0), total, total + 1, 3000000000, -3):
        queries.append(f"{{{root}(limit: 3, offset: {offset}){{{whole}}}}}")
    for field, of in types[name]:
        selected = {"scalar": field}.get(of) or f"{field}{{__typename}}"
        if of != "scalars":
            queries.append(f"{{{root}(offset: {total // 3}){{{selected}}}}}")
    queries += [
        f"{{a: {root}(limit: 2){{x: {first} y: {first} {first}}} b: {root}(limit: 1, offset: 1){{{first}}}}}",
        f"{{{root}(limit: 2){{...f ...f}}}} fragment f on {name} {{{whole}}}",
        f"{{...r}} fragment r on Query {{{root}(limit: 1){{... on {name}{{{first}}} ... on {name}{{__typename}}}}}}",
        f"{{{root}(limit: 1){{{first}}} {root}(limit: 1){{t: __typename}}}}",
        f"query a {{{root}(limit: 1){{{first} @skip(if: true) __typename}}}}",
    ]
    return queries


def with_errors(root: str, name: str, field: str) -> list[str]:
    """Queries that both refuse."""
    fields = " ".join([field] * 501)
    aliases = " ".join(f"a{number}: {field}" for number in range(51))
    return [
        "{", "}", "{}", "query", "hello", "{summary}", "{summary{}}", "{nothing}", "{summary{nothing}}",
        f"{{{root}}}", f"{{{root}{{nothing}}}}", f"{{{root}{{{field}{{a}}}}}}", f"{{{root}(first: 1){{{field}}}}}",
        f'{{{root}(limit: "1"){{{field}}}}}', f"{{{root}(limit: 1.5){{{field}}}}}", f"{{{root}(limit: true){{{field}}}}}",
        f"{{{root}(limit: [1]){{{field}}}}}", f"{{{root}(limit: $n){{{field}}}}}", f"{{{root}(limit: 1 limit: 2){{{field}}}}}",
        f"{{{root}{{...f}}}}", f"{{{root}{{...f}}}} fragment f on Query {{summary{{totalSchemas}}}}",
        f"{{{root}{{{field}}}}} fragment unused on {name} {{{field}}}",
        # No fragments that spread each other: they overflow the stack of catalogd v1.11.0, which ends it.
        f"{{{root}{{a: {field} a: __typename}}}}", f"{{{root}(limit: 1){{{field}}} {root}(limit: 2){{{field}}}}}",
        f"{{{root}{{{field} @nothing}}}}", f"{{{root}{{{field} @skip}}}}", f"{{{root}{{...f}}}} fragment f on Nothing {{a}}",
        f"query a {{__typename}} query a {{__typename}}", "query a {__typename} query b {__typename}",
        f"{{{root}{{{fields}}}}}", f"{{{root}{{{aliases}}}}}", "{" * 11 + "a" + "}" * 11,
        "mutation {a}", "subscription {a}", f"{{{root}{{{field}}}", f"{{bundles{{{field}}}}}",
    ]


# Of the documentation of catalogd, whose examples are partly wrong about real catalogs.
DOCUMENTED = [
    "{olmpackages(limit: 10){name defaultChannel description}}",
    "{olmpackages(limit: 5, offset: 10){name defaultChannel description}}",
    "{olmbundles(limit: 10){name package version image skipRange}}",
    "{olmchannels(limit: 10){name package entries}}",
    "{olmchannels(limit: 10){name package entries{name replaces skipRange}}}",
    "{olmbundles(limit: 5){name package properties{type value}}}",
    "{bundles(limit: 5){name package properties{type value{... on PropertyValueOlmGvk{group version kind}}}}}",
    "{olmbundles(limit: 5){name relatedImages{image name}}}",
    "{olmpackages{name channels}}",
    "{olmbundles(limit: 20, offset: 40){name image}}",
    "query GetBundles {olmbundles(limit: 3){name} summary{totalSchemas}}",
    "{olmdeprecations{package entries{message reference}}}",
    '{__type(name: "OlmBundle"){name kind fields{name}}}',
    "{__schema{queryType{name} mutationType{name} subscriptionType{name}}}",
]
