#!/usr/bin/env python3
"""Compares `catalog-mirror validate` with opm on mutated catalogs.

usage: validations.py CATALOG_MIRROR CASES ANSWERS FOLDER

CASES has one JSON object a line (rule, edits, package, text), ANSWERS the verdict of opm for each. Prints every difference,
and the number of catalogs of each verdict in the last line.
"""
import collections, concurrent.futures, json, os, re, subprocess, sys

# opm ignores the field. catalogd puts the package under it, so its channels would be missing there.
ACCEPTED_BY_OPM = {"package-field-differs"}


def validate(program, folder, case):
    os.makedirs(folder)
    with open(f"{folder}/catalog.yaml", "w") as file:
        file.write(case["text"])
    ran = subprocess.run([program, "validate", "--json", f"dir:{folder}"], capture_output=True, text=True)
    if ran.returncode not in (0, 1) or not ran.stdout:
        return {"failed": f"exit code {ran.returncode}: {ran.stderr}"}
    report = json.loads(ran.stdout)
    if (ran.returncode == 0) != report["servable"]:
        return {"failed": f"exit code {ran.returncode}, but servable is {report['servable']}"}
    return report


def difference(case, answer, report):
    if "failed" in report:
        return report["failed"]
    rules = set(report["rules"])
    if case["rule"] != "valid" and case["rule"] not in rules:
        return f"found {sorted(rules)}"
    if case["rule"] in ACCEPTED_BY_OPM and answer["valid"]:
        return None
    verdicts = [(of["valid"], of["servable"]) for of in (report, answer)]
    if verdicts[0] != verdicts[1]:
        return f"valid and servable are {verdicts[0]}, for opm {verdicts[1]}: {sorted(rules)}, {answer['message']}"
    return names_difference(case, answer["message"], report)


def names_difference(case, message, report):
    """The most specific names in opm's message must be among ours. Some of its messages name nothing."""
    for names in known_names(case["text"]):
        mentioned = [name for name in names if is_named(name, message)]
        if mentioned:
            ours = json.dumps(report["findings"])
            same = any(is_named(name, ours) for name in mentioned)
            return None if same else f"opm names {mentioned}: {message}; found {ours}"
    return None


def known_names(text):
    """The names of bundles, channels and packages in a catalog, in this order."""
    bundles, channels, packages = set(), set(), set()
    for line in text.splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if not isinstance(document, dict):
            continue
        name = document.get("name")
        packages.add(document.get("package"))
        {"olm.bundle": bundles, "olm.channel": channels, "olm.package": packages}.get(document.get("schema"), set()).add(name)
        entries = document.get("entries")
        for entry in entries if isinstance(entries, list) else []:
            bundles.add(entry.get("name") if isinstance(entry, dict) else None)
    return [[name for name in names if isinstance(name, str) and name] for names in (bundles, channels, packages)]


def is_named(name, text):
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def main():
    program, cases, answers, folder = sys.argv[1:]
    cases, answers = ([json.loads(line) for line in open(file)] for file in (cases, answers))
    if len(cases) != len(answers):
        sys.exit(f"{len(cases)} catalogs, but {len(answers)} answers")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = list(pool.map(lambda at: validate(program, f"{folder}/{at}", cases[at]), range(len(cases))))
    different, verdicts = 0, collections.Counter()
    for case, answer, report in zip(cases, answers, reports):
        reason = difference(case, answer, report)
        verdicts["valid" if answer["valid"] else "invalid"] += 1
        if reason:
            different += 1
            print(f"{case['rule']}: {case['package']}: {case['edits']}: {reason}")
    print(f"{len(cases)} catalogs, {verdicts['valid']} valid, {different} different")
    sys.exit(different > 0)


main()
