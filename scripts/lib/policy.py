#!/usr/bin/env python3
"""What a policy says to requests, so that a table of requests can be held against it.

    policy.py DOCUMENT <REQUESTS

A request is a line `ACTION RESOURCE [KEY=VALUE...]`; the condition keys that it does not name it does not carry, and
`principal` is who asks. The answer is a line: Deny, Allow, or None where no statement says anything. How S3 and IAM
evaluate one policy: IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements: Condition operators".
Only the operators of our own template are known here; another one is an error. `*` is any text and `?` one character, slashes included.
"""

import json
import sys
from fnmatch import fnmatchcase


def as_list(value):
    return value if isinstance(value, list) else [value]


def holds(operator, key, wanted, context):
    # Names of condition keys know no case.
    found = context.get(key.lower())
    if operator == "Null":
        return (found is None) == (str(wanted).lower() == "true")
    if found is None:
        return False
    match operator:
        case "Bool" | "StringEquals":
            return found in map(str, as_list(wanted))
        case "NumericLessThan":
            return float(found) < float(wanted)
    raise ValueError(f"the condition operator {operator} is not known here")


def is_about(statement, action, resource, context):
    principal = statement.get("Principal", "*")
    names = ["*"] if principal == "*" else [name for value in principal.values() for name in as_list(value)]
    return (
        any(name in ("*", context.get("principal")) for name in names)
        and any(fnmatchcase(action.lower(), pattern.lower()) for pattern in as_list(statement["Action"]))
        and any(fnmatchcase(resource, pattern) for pattern in as_list(statement["Resource"]))
        and all(
            holds(operator, key, wanted, context)
            for operator, block in statement.get("Condition", {}).items()
            for key, wanted in block.items()
        )
    )


def evaluate(document, action, resource, context):
    effects = {each["Effect"] for each in document["Statement"] if is_about(each, action, resource, context)}
    return next((effect for effect in ("Deny", "Allow") if effect in effects), "None")


def main(path):
    with open(path) as file:
        document = json.load(file)
    for line in sys.stdin:
        action, resource, *pairs = line.split()
        context = {key.lower(): value for key, value in (pair.split("=", 1) for pair in pairs)}
        print(evaluate(document, action, resource, context))


if __name__ == "__main__":
    main(*sys.argv[1:])
