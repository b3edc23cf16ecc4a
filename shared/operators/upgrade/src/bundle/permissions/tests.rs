use serde_json::{Value, json};

use super::*;
use crate::bundle::documents::BundleDocument;

fn document(value: Value) -> BundleDocument {
    BundleDocument {
        file: "operator.yaml".to_owned(),
        bytes: 0,
        value,
    }
}

fn with_rules(rules: &Value, cluster_rules: &Value) -> Value {
    let entry = |rules: &Value| json!([{"serviceAccountName": "a", "rules": rules}]);
    json!({"spec": {"install": {"spec": {"permissions": entry(rules), "clusterPermissions": entry(cluster_rules)}}}})
}

/// Returns the permissions of rules with `|` between: verbs, groups, resources and names, each with
/// commas between, then `all` or `own` for the namespaces. `-` stands for the core of Kubernetes,
/// and for any name.
fn permissions(rules: &str) -> Permissions {
    let rule = |text: &str| {
        let mut lists = text
            .split(' ')
            .map(|list| list.split(',').map(|word| word.trim_matches('-')));
        let [verbs, groups, resources, names] =
            [(); 4].map(|()| lists.next().unwrap().collect::<Value>());
        json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names})
    };
    let rules_of = |place: &str| -> Value {
        let rules = rules.split('|').filter_map(|text| text.strip_suffix(place));
        rules.map(rule).collect()
    };
    read(
        &document(with_rules(&rules_of(" own"), &rules_of(" all"))).root(),
        &[],
    )
    .unwrap()
}

/// Rules before and after, and what is gained: of each rule one list alone decides, as the
/// authorizer of Kubernetes evaluates it.
const GAINED: &str = "\
get apps pods - own -> get apps pods - own =>
get apps pods - own -> list apps pods - own => list pods of apps own
get,list apps pods - own -> * apps pods - own => do everything with pods of apps own [*]
* apps pods - own -> get,list apps pods - own =>
get apps pods - own -> get - pods - own => get pods own
get apps pods - own -> get apps,batch pods - own => get pods of batch own
get apps pods - own -> get * pods - own => get pods of all groups own [*]
get * pods - own -> get -,apps pods - own =>
get apps pods - own -> get apps nodes,pods - own => get nodes of apps own
get apps pods - own -> get apps * - own => get all resources of apps own [*]
get apps * - own -> get apps pods,pods/log - own =>
get apps pods - own -> get apps pods/log - own => get pods/log of apps own
get apps pods/log - own -> get apps */log - own => get */log of apps own
get apps */log - own -> get apps pods/log,nodes/log - own =>
get apps */log - own -> get apps pods,log - own => get log of apps own, get pods of apps own
get apps pods - own -> get apps pods a,b own =>
get apps pods a own -> get apps pods a,b own => get pods of apps named b own
get apps pods a,b own -> get apps pods - own => get pods of apps own
get apps pods - all -> get apps pods - own =>
get apps pods - own -> get apps pods - all => get pods of apps all
get apps pods a own|list apps pods b own -> get,list apps pods a own => list pods of apps named a own
get apps pods - own|* * nodes - own -> get,list apps nodes,pods - own => list pods of apps own";

#[test]
fn gained_is_what_no_rule_before_allows() {
    for row in GAINED.lines() {
        let (rules, expected) = row.split_once(" =>").unwrap();
        let (old, new) = rules.split_once(" -> ").unwrap();
        let found =
            Vec::from_iter(sentences(&gained(&permissions(old), &permissions(new)))).join(", ");
        let found = found
            .replace("a may ", "")
            .replace("in all namespaces", "all");
        let found = found.replace("in the namespaces that it watches", "own");
        assert_eq!(found, expected.trim(), "{row}");
    }
}

#[test]
fn sentence_names_verbs_targets_and_place() {
    let all = [
        "create", "delete", "get", "list", "patch", "update", "watch",
    ];
    let rules = json!([
        {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["secrets"]},
        {"verbs": all, "apiGroups": ["apps"], "resources": ["deployments", "daemonsets"]},
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/finalizers"]},
        {"verbs": ["update"], "apiGroups": ["x"], "resources": ["things"], "resourceNames": ["one"]},
        {"verbs": ["update"], "apiGroups": ["x"], "resources": ["things"], "resourceNames": ["one"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes/proxy"]},
        {"verbs": ["bind", "escalate"], "apiGroups": ["r"], "resources": ["roles"]},
        {"verbs": ["get"], "apiGroups": ["r"], "resources": ["mutatingwebhookconfigurations"]},
        {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
    ]);
    let subjects = json!([{"kind": "ServiceAccount", "name": "a"}, {"kind": "User", "name": "b"}]);
    let group = "rbac.authorization.k8s.io/v1";
    let of_role = |kind: &str, role: &str, name: &str| {
        let role = json!({"kind": role, "name": name});
        document(json!({"apiVersion": group, "kind": kind, "roleRef": role, "subjects": subjects}))
    };
    let role = json!({
        "apiVersion": group, "kind": "Role", "metadata": {"name": "r"},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    });
    let manifests = [
        of_role("ClusterRoleBinding", "ClusterRole", "cluster-admin"),
        of_role("RoleBinding", "Role", "r"),
        document(role),
    ];
    let operator = document(with_rules(&json!([]), &rules));
    let permissions = read(
        &operator.root(),
        &manifests.each_ref().map(BundleDocument::root),
    )
    .unwrap();
    let found: Vec<String> = sentences(&permissions).into_iter().collect();
    assert_eq!(
        found,
        [
            "a may bind, escalate roles of r in all namespaces [escalate, bind]",
            "a may do all that the role cluster-admin allows in all namespaces [*]",
            "a may do everything with */finalizers of all groups in all namespaces [*]",
            "a may get mutatingwebhookconfigurations of r in all namespaces [webhooks]",
            "a may get nodes/proxy in all namespaces [nodes/proxy]",
            "a may get pods in the namespaces that it watches",
            "a may get the URL /metrics in all namespaces",
            "a may read and write daemonsets of apps in all namespaces",
            "a may read and write deployments of apps in all namespaces",
            "a may read secrets in all namespaces [secrets]",
            "a may update things of x named one in all namespaces",
        ]
    );
}

#[test]
fn rules_are_refused_beyond_maximum() {
    let rules = |verbs: usize| {
        let verbs: Vec<String> = (0..verbs).map(|at| format!("v{at}")).collect();
        let rule = json!({"verbs": verbs, "apiGroups": [""], "resources": ["a", "b"]});
        with_rules(&json!([rule]), &json!([]))
    };
    assert!(read(&document(rules(GRANTS_MAX / 2)).root(), &[]).is_ok());
    let error = read(&document(rules(GRANTS_MAX / 2 + 1)).root(), &[])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("spec.install.spec.permissions[0].rules[0] brings"),
        "{error}"
    );
}
