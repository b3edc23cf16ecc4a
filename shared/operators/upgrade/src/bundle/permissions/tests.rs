use proptest::prelude::*;
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
        &Bounds::default(),
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
        let bounds = Bounds::default();
        let gained = gained(&permissions(old), &permissions(new), &bounds).unwrap();
        let found = Vec::from_iter(sentences(&gained, &bounds).unwrap()).join(", ");
        let found = found
            .replace("a may ", "")
            .replace("in all namespaces", "all")
            .replace("in the namespaces that it watches", "own");
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
        &Bounds::default(),
    )
    .unwrap();
    let sentences = sentences(&permissions, &Bounds::default()).unwrap();
    let found: Vec<String> = sentences.into_iter().collect();
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
    let found = |verbs| read(&document(rules(verbs)).root(), &[], &Bounds::default());
    assert!(found(GRANTS_MAX / 2).is_ok());
    let error = found(GRANTS_MAX / 2 + 1).unwrap_err().to_string();
    assert!(
        error.contains("spec.install.spec.permissions[0].rules[0] brings"),
        "{error}"
    );
}

/// Returns true if everything that `other` allows is allowed by `own` too: the comparison of each
/// grant with each.
fn covers(own: &Grant, other: &Grant) -> bool {
    let or_all = |own: &str, other: &str| own == "*" || own == other;
    let pattern = own.target.as_str();
    let is_pattern = match own.kind {
        TargetKind::Resource => pattern.starts_with("*/") && other.target.ends_with(&pattern[1..]),
        TargetKind::Url => {
            pattern.ends_with('*') && other.target.starts_with(pattern.trim_end_matches('*'))
        }
        TargetKind::Role => false,
    };
    own.account == other.account
        && own.kind == other.kind
        && (own.is_everywhere || !other.is_everywhere)
        && or_all(&own.verb, &other.verb)
        && or_all(&own.group, &other.group)
        && (or_all(pattern, &other.target) || is_pattern)
        && (own.name.is_empty() || own.name == other.name)
}

fn grants() -> impl Strategy<Value = Permissions> {
    let resource = prop::sample::select(vec![
        "*", "a", "b", "a/x", "b/x", "*/x", "*/y", "*/x/y", "a/x/y", "*/", "x",
    ]);
    let url = prop::sample::select(vec![
        "*", "**", "/a", "/a*", "/a**", "/ab", "/ab/*", "/ab/c", "/b*", "",
    ]);
    let target = prop_oneof![
        resource.prop_map(|target| (TargetKind::Resource, target)),
        url.prop_map(|target| (TargetKind::Url, target)),
        prop::sample::select(vec!["*", "admin"]).prop_map(|target| (TargetKind::Role, target)),
    ];
    let group = prop::sample::select(vec!["", "*", "g"]);
    let verb = prop::sample::select(vec!["*", "get", "list"]);
    let name = prop::sample::select(vec!["", "n"]);
    let account = prop::sample::select(vec!["s", "t"]);
    let grant = (account, any::<bool>(), target, group, name, verb).prop_map(
        |(account, is_everywhere, (kind, target), group, name, verb)| Grant {
            account: account.to_owned(),
            is_everywhere,
            kind,
            group: group.to_owned(),
            target: target.to_owned(),
            name: name.to_owned(),
            verb: verb.to_owned(),
        },
    );
    prop::collection::btree_set(grant, 0..12)
}

proptest! {
    #[test]
    fn coverage_equals_comparison_of_each_with_each(old in grants(), new in grants()) {
        let mut expected = new.clone();
        expected.retain(|grant| !old.iter().any(|old| covers(old, grant)));
        prop_assert_eq!(gained(&old, &new, &Bounds::default()).unwrap(), expected);
        let coverage = Coverage::new(&new);
        for grant in &new {
            // Of two that cover each other the first one is kept.
            let is_included = new.iter().any(|other| {
                other != grant && covers(other, grant) && (!covers(grant, other) || other < grant)
            });
            prop_assert_eq!(coverage.includes_in_another(grant), is_included, "{:?}", grant);
        }
    }
}

#[test]
fn url_with_two_asterisks_is_told_once() {
    let rules = json!([{"verbs": ["get"], "nonResourceURLs": ["*", "**", "/a*", "/a**"]}]);
    let operator = document(with_rules(&json!([]), &rules));
    let permissions = read(&operator.root(), &[], &Bounds::default()).unwrap();
    let found = sentences(&permissions, &Bounds::default()).unwrap();
    assert!(
        found
            .iter()
            .eq(["a may get the URL * in all namespaces [*]"]),
        "{found:?}"
    );
}

#[test]
fn read_accepts_exactly_the_size_of_its_answer() {
    let rule = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["a", "b"]});
    let operator = document(with_rules(&json!([rule]), &json!([])));
    let read = |bounds: &Bounds| {
        let permissions = read(&operator.root(), &[], bounds)?;
        Ok::<_, BundleError>(sentences(&permissions, bounds)?.len())
    };
    let whole = Bounds::default();
    assert_eq!(read(&whole).unwrap(), 2);
    let with = |bytes| read(&Bounds::new(work::Budget::default(), bytes));
    assert_eq!(with(whole.answer_used()).unwrap(), 2);
    let error = with(whole.answer_used() - 1).unwrap_err().to_string();
    assert!(
        error.starts_with("the answer exceeds the limit of"),
        "{error}"
    );
}
