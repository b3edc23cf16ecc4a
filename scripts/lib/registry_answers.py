"""Compares the answers of two servers of the registry API: registry_answers.py EXPECTED ACTUAL, as `opm-oracle answers` writes them."""

import json
import sys


def agrees(expected, actual):
    if expected.get("anyOf"):
        messages = actual.get("messages", [])
        return not actual.get("code") and len(messages) == 1 and messages[0] in expected["messages"]
    return expected == actual


def main():
    with open(sys.argv[1]) as expected_file, open(sys.argv[2]) as actual_file:
        expected, actual = expected_file.readlines(), actual_file.readlines()
    wrong = [pair for pair in zip(expected, actual) if not agrees(json.loads(pair[0]), json.loads(pair[1]))]
    for pair in wrong[:10]:
        print("expected: %.1500s\nis:       %.1500s" % pair)
    if wrong or len(expected) != len(actual) or not expected:
        sys.exit(f"{len(wrong)} of {len(expected)} answers differ; {len(actual)} were given")
    print(f"{len(expected)} answers agree")


main()
