"""Writes a catalog of odd values to standard output: each field has values of all kinds, the first of which is its type."""

import json

VALUES = [
    None, True, False, 0, 1, -7, 2.5, 1234567, 0.00001, 2147483647, 2147483648, -2147483649, 1e20, 1e21, 1.5e300,
    12345678901234567890, "", "false", "text", "12", "-1.5e3", " 12", "1e999", "a <b> & \u2028 \"c\" \\ ü", {}, {"b": 1, "a": "<&>"},
    {"n": [1.0, 1e21, 1e-7, {"x": None}]},
]
# No lists among them: a list where the type is a scalar is text at catalogd only if the first value was no list.
LISTS = [[], [1], ["a", 1], [{"x": 1}], [None], [[1], [2]]]
FIRST = {"text": "a", "whole": 1, "number": 1.5, "truth": True, "object": {"a": 1}, "nothing": None, "large": 12345678901234567890}
ELEMENT = {"text": "a", "whole": 1, "number": 0.5, "truth": False, "object": {"a": 1}, "none": None, "UPPER_case": 1, "2nd": 2, "a.b-c": 3}


def metas():
    for number in range(len(VALUES) + len(LISTS) + 1):
        meta = {"schema": "odd.value", "name": f"odd-{number:02}", "package": "odd"}
        for field, first in FIRST.items():
            meta[field] = first if number == 0 else (VALUES + LISTS)[number - 1]
        value = ELEMENT if number == 0 else {field: (VALUES + LISTS)[number - 1] for field in ELEMENT}
        meta["list"] = [value, {}, None, "text", 1, [1], {"another": 1}] if number % 3 == 0 else [value]
        meta["sometimesList"] = [{"x": 1}] if number == 0 else (VALUES + LISTS)[number - 1]
        meta["missing-first" if number else "only_first"] = number
        yield meta
    for number in range(12):
        yield {"schema": "odd.list", "name": f"l{number}", "texts": ["a", number], "numbers": [number, 2.5], "deep": [[1], ["a"]],
               "empties": [], "nulls": [None], "truths": [True], "mixed": ["a", {"x": number}], "objects": [{}]}
    yield {"schema": "Upper.CASE-9", "name": "x", "URL": 1, "x_y_z": "a", "__a__": 1, "größe": 2, "名前": 3, "9": 4}
    yield {"schema": "olm.package", "name": "odd", "defaultChannel": "a"}
    yield {"schema": "olm.bundle", "name": "odd.v1", "package": "odd", "properties": []}
    yield {"schema": "olm.bundle", "name": "odd.v2", "package": "odd", "properties": [{"type": "a", "value": {"b": "<"}}]}
    yield {"name": "without a schema"}


for meta in metas():
    print(json.dumps(meta, ensure_ascii=False))
