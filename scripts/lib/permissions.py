"""Permissions of bundles, judged by the authorizer of a real API server.

    permissions.py generated                          prints a catalog whose bundles have random rules, two versions a package
    permissions.py compare LINES PROGRAM STORE NAME   asks a SubjectAccessReview for each verb of each sentence of `bundle diff`

What a difference says is gained must be allowed with the rules of the new bundle and not with those of the old one, and what it
says is lost the other way round. LINES are canonical lines of the catalog NAME. kubectl is on the path.
"""

import json
import random
import re
import subprocess
import sys

from bundles import consecutive, differences, print_package

SENTENCE = re.compile(
    r"(?P<account>\S+) may (?P<verbs>do everything with|read and write|read|[a-z*, ]+?) (?:the URL (?P<url>\S+)|(?P<resource>all resources|\S+)"
    r"(?: of (?P<group>all groups|\S+))?(?: named (?P<name>\S+))?) in (?P<place>all namespaces|the namespaces that it watches)(?: \[.*\])?"
)
READ, WRITE = ["get", "list", "watch"], ["create", "delete", "patch", "update"]
VERBS = {"do everything with": ["*"], "read and write": READ + WRITE, "read": READ}
WATCHED = "watched"
RBAC = "rbac.authorization.k8s.io"


def random_rules(source):
    def some(words, least=1):
        return source.sample(words, source.randint(least, 2))

    rules = []
    for _ in range(source.randint(1, 4)):
        rule = {"verbs": some(["*", "get", "list", "watch", "update"]), "apiGroups": some(["*", "", "apps"])}
        rule["resources"] = some(["*", "pods", "pods/log", "*/log", "secrets"])
        rules.append(rule | ({"resourceNames": some(["a", "b"])} if source.random() < 0.3 else {}))
    return rules


def random_spec(source):
    """Returns what the spec of a ClusterServiceVersion has of permissions."""
    urls = {"verbs": ["get"], "nonResourceURLs": [source.choice(["/metrics", "/metrics/*", "/a*", "*"])]}
    install = {
        "permissions": [{"serviceAccountName": "a", "rules": random_rules(source)}],
        "clusterPermissions": [{"serviceAccountName": "a", "rules": [*random_rules(source)[:2], urls]}],
        "deployments": [],
    }
    return {"install": {"strategy": "deployment", "spec": install}}


def print_generated():
    source = random.Random(1)
    for package in range(150):
        print_package(f"p{package}", [(random_spec(source), []) for _ in range(2)])


def roles(prefix, objects):
    """Yields the roles and bindings that OLM v0 makes of a bundle, for accounts with a prefix."""
    operator = next(one for one in map(json.loads, objects) if one["kind"] == "ClusterServiceVersion")
    install = operator["spec"]["install"]["spec"]
    for field, kind in (("permissions", "Role"), ("clusterPermissions", "ClusterRole")):
        for number, entry in enumerate(install.get(field) or []):
            rules = [rule for rule in entry["rules"] if kind == "ClusterRole" or not rule.get("nonResourceURLs")]
            metadata = {"name": f"{prefix}-{number}", "namespace": WATCHED}
            subject = {"kind": "ServiceAccount", "namespace": WATCHED, "name": f"{prefix}-{entry['serviceAccountName']}"}
            yield {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}
            yield {
                "apiVersion": f"{RBAC}/v1",
                "kind": f"{kind}Binding",
                "metadata": metadata,
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": metadata["name"]},
                "subjects": [subject],
            }


def reviews(prefix, sentence):
    """Yields the requests of a sentence, by the account with a prefix."""
    found = SENTENCE.fullmatch(sentence)
    if not found:
        sys.exit(f"not understood: {sentence}")
    for verb in VERBS.get(found["verbs"]) or found["verbs"].split(", "):
        spec = {"user": f"system:serviceaccount:{WATCHED}:{prefix}-{found['account']}"}
        if found["url"]:
            spec["nonResourceAttributes"] = {"path": found["url"], "verb": verb}
        else:
            resource, _, subresource = found["resource"].replace("all resources", "*").partition("/")
            group = (found["group"] or "").replace("all groups", "*")
            spec["resourceAttributes"] = {
                "verb": verb,
                "group": group,
                "resource": resource,
                "subresource": subresource,
                "name": found["name"] or "",
                "namespace": WATCHED if found["place"].startswith("the") else "",
            }
        yield {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}


def create(objects):
    """Creates objects. Returns a word for each: `true` for a review whose request is allowed."""
    answers = []
    for start in range(0, len(objects), 500):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects[start : start + 500]})
        command = ["kubectl", "create", "--validate=false", "-f", "-", "-o", r'jsonpath={.status.allowed}{"\n"}']
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr[:2000])
        answers += done.stdout.splitlines()
    return answers


def compare(lines, program, store, catalog):
    """Prints each sentence that the API server contradicts, and fails if there is one."""
    pairs = [pair for pair in consecutive(lines) if all(b"ClusterServiceVersion" in b"".join(one[2]) for one in pair)]
    objects, asked = [], []
    for number, ((old, new), found) in enumerate(zip(pairs, differences(pairs, program, store, catalog))):
        prefixes = [f"{catalog}-{number}-old", f"{catalog}-{number}-new"]
        for prefix, bundle in zip(prefixes, (old, new)):
            objects += roles(prefix, bundle[2])
        for list_name, expected in (("added", [False, True]), ("removed", [True, False])):
            for sentence in found.get("permissions", {}).get(list_name, []):
                if "do all that the role" in sentence:
                    continue
                for prefix, allowed in zip(prefixes, expected):
                    asked += [(old, new, sentence, review, allowed) for review in reviews(prefix, sentence)]
    create(objects)
    answers = create([review for _, _, _, review, _ in asked])
    wrong = 0
    for (old, new, sentence, review, allowed), answer in zip(asked, answers, strict=True):
        if (answer == "true") != allowed:
            wrong += 1
            print(old[0], old[1], new[1], sentence, json.dumps(review["spec"]), "is allowed:", answer)
    print(len(asked), "requests about", len(pairs), "pairs of bundles,", wrong, "of them answered in another way")
    sys.exit(1 if wrong or not asked else 0)


if __name__ == "__main__":
    {"generated": print_generated, "compare": compare}[sys.argv[1]](*sys.argv[2:])
