use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::documents::BundleDocument;

/// A request, as the authorizer of Kubernetes sees it.
#[derive(Debug, Clone)]
struct Request {
    is_everywhere: bool,
    verb: String,
    group: String,
    resource: String,
    name: String,
}

/// Evaluates rules as `k8s.io/kubernetes/pkg/apis/rbac/v1` does: each list of a rule on its own.
fn allows(operator: &Value, request: &Request) -> bool {
    let install = &operator["spec"]["install"]["spec"];
    let rules = |field: &str| {
        let entries = install[field].as_array().into_iter().flatten();
        entries
            .flat_map(|entry| entry["rules"].as_array().unwrap().clone())
            .collect::<Vec<_>>()
    };
    let mut all = rules("clusterPermissions");
    if !request.is_everywhere {
        all.extend(rules("permissions"));
    }
    all.iter().any(|rule| {
        let has = |field: &str, texts: &[&str]| {
            let own = rule[field].as_array().into_iter().flatten();
            own.clone().any(|text| texts.contains(&text.as_str().unwrap()))
        };
        let subresource = request.resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
        let names = rule["resourceNames"].as_array();
        has("verbs", &["*", &request.verb])
            && has("apiGroups", &["*", &request.group])
            && has(
                "resources",
                &["*", &request.resource, subresource.as_deref().unwrap_or("*")],
            )
            && (names.is_none_or(Vec::is_empty) || has("resourceNames", &[&request.name]))
    })
}

fn document(value: Value) -> BundleDocument {
    BundleDocument {
        file: "operator.yaml".to_owned(),
        bytes: 0,
        value,
    }
}

fn permissions_of(value: &Value) -> Permissions {
    read(&document(value.clone()).root(), &[]).unwrap()
}

fn with_rules(rules: &Value, cluster_rules: &Value) -> Value {
    let entry = |rules: &Value| json!([{"serviceAccountName": "a", "rules": rules}]);
    json!({"spec": {"install": {"spec": {"permissions": entry(rules), "clusterPermissions": entry(cluster_rules)}}}})
}

fn rules() -> impl Strategy<Value = Value> {
    let some = |words: &'static [&'static str], size| prop::collection::vec(prop::sample::select(words), size);
    let rule = (
        some(&["*", "get", "list"], 1..3),
        some(&["*", "", "apps"], 1..3),
        some(&["*", "pods", "pods/log", "*/log"], 1..3),
        some(&["a", "b"], 0..2),
    );
    let rule = rule.prop_map(|(verbs, groups, resources, names)| {
        json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names})
    });
    prop::collection::vec(rule, 0..4).prop_map(Value::from)
}

/// Returns a request that only a grant at least as wide allows: words that no rule has stand for patterns.
fn narrowest(grant: &Grant) -> Request {
    assert_eq!(grant.kind, TargetKind::Resource, "the rules have no URLs");
    let fresh = |text: &str| text.replace('*', "fresh");
    Request {
        is_everywhere: grant.is_everywhere,
        verb: fresh(&grant.verb),
        group: fresh(&grant.group),
        resource: fresh(&grant.target),
        name: Some(grant.name.clone())
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "fresh".to_owned()),
    }
}

proptest! {
    #[test]
    fn gained_is_allowed_by_new_and_not_by_old(old in (rules(), rules()), new in (rules(), rules())) {
        let (old, new) = (with_rules(&old.0, &old.1), with_rules(&new.0, &new.1));
        let (before, after) = (permissions_of(&old), permissions_of(&new));
        for grant in &gained(&before, &after) {
            let request = narrowest(grant);
            prop_assert!(allows(&new, &request) && !allows(&old, &request), "{request:?}");
        }
        // And all that the new one allows and the old one does not is covered by something gained.
        let gained = gained(&before, &after);
        for grant in after.iter().filter(|grant| !allows(&old, &narrowest(grant))) {
            prop_assert!(gained.iter().any(|gained| gained.covers(grant)), "{grant:?}");
        }
    }
}

#[test]
fn sentence_names_verbs_targets_and_place() {
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
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
    let permissions = read(&operator.root(), &manifests.each_ref().map(BundleDocument::root)).unwrap();
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
