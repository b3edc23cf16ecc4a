//! Permissions of service accounts, as Kubernetes' RBAC evaluates them: rules only allow, and what one allows is the same wherever
//! it is written.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    BundleError,
    manifest::{Field, Manifest},
};

/// Maximum number of grants in a bundle. Real bundles have at most a few thousand, and each is compared with each.
const GRANTS_MAX: usize = 20_000;

/// One verb on one thing. Either may be a pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    /// True in all namespaces, false in those that the operator is installed for.
    is_everywhere: bool,
    target: Target,
    verb: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Resource {
        group: String,
        /// Resource, or resource and subresource with a slash between them.
        resource: String,
        /// Name of the one object; `None` for all.
        name: Option<String>,
    },
    Url(String),
    /// Role that the bundle does not have, such as `cluster-admin`.
    Role(String),
}

/// Grants of each service account.
pub(crate) type Permissions = BTreeMap<String, BTreeSet<Grant>>;

impl Grant {
    /// Returns true if everything that `other` allows is allowed by this one too.
    fn covers(&self, other: &Self) -> bool {
        let or_all = |own: &str, other: &str| own == "*" || own == other;
        let is_target = match (&self.target, &other.target) {
            (
                Target::Resource { group, resource, name },
                Target::Resource {
                    group: other_group,
                    resource: other_resource,
                    name: other_name,
                },
            ) => {
                let subresource = other_resource.split_once('/').map(|(_, subresource)| subresource);
                let is_resource = or_all(resource, other_resource)
                    || resource.strip_prefix("*/").is_some_and(|own| Some(own) == subresource);
                or_all(group, other_group) && is_resource && (name.is_none() || name == other_name)
            }
            (Target::Url(own), Target::Url(other)) => {
                own == other || own.strip_suffix('*').is_some_and(|start| other.starts_with(start))
            }
            (own, other) => own == other,
        };
        (self.is_everywhere || !other.is_everywhere) && or_all(&self.verb, &other.verb) && is_target
    }
}

/// Reads the permissions of a ClusterServiceVersion, and those that roles and bindings of the bundle give to service accounts.
pub(crate) fn read(operator: &Manifest, manifests: &[Manifest]) -> Result<Permissions, BundleError> {
    let mut permissions = Permissions::new();
    for (field, is_everywhere) in [("permissions", false), ("clusterPermissions", true)] {
        for entry in operator.at("spec.install.spec")?.at(field)?.items()? {
            let account = entry.at("serviceAccountName")?.text()?;
            add_rules(&mut permissions, account, is_everywhere, &entry.at("rules")?)?;
        }
    }
    let bindings = manifests
        .iter()
        .filter(|manifest| ["ClusterRoleBinding", "RoleBinding"].contains(&manifest.kind()));
    for binding in bindings {
        let is_everywhere = binding.kind() == "ClusterRoleBinding";
        let (kind, name) = (binding.at("roleRef.kind")?.text()?, binding.at("roleRef.name")?.text()?);
        let role = manifests.iter().find(|role| role.kind() == kind && role.name() == name);
        for subject in binding.at("subjects")?.items()? {
            let account = subject.at("name")?.text()?;
            if subject.value["kind"] != "ServiceAccount" {
                continue;
            } else if let Some(role) = role {
                add_rules(&mut permissions, account, is_everywhere, &role.at("rules")?)?;
            } else {
                let (target, verb) = (Target::Role(name.to_owned()), "*".to_owned());
                let grants = permissions.entry(account.to_owned()).or_default();
                grants.insert(Grant {
                    is_everywhere,
                    target,
                    verb,
                });
            }
        }
    }
    Ok(permissions)
}

fn add_rules(
    permissions: &mut Permissions,
    account: &str,
    is_everywhere: bool,
    rules: &Field<'_>,
) -> Result<(), BundleError> {
    let mut count: usize = permissions.values().map(BTreeSet::len).sum();
    let grants = permissions.entry(account.to_owned()).or_default();
    for rule in rules.items()? {
        let texts = |name| rule.at(name)?.texts();
        let (verbs, groups, resources, names) = (
            texts("verbs")?,
            texts("apiGroups")?,
            texts("resources")?,
            texts("resourceNames")?,
        );
        // Kubernetes has no URLs in a namespace.
        let urls = if is_everywhere {
            texts("nonResourceURLs")?
        } else {
            Vec::new()
        };
        let sizes = [groups.len(), resources.len(), names.len().max(1)];
        let resource_targets = sizes.into_iter().fold(1, usize::saturating_mul);
        count = count.saturating_add(resource_targets.saturating_add(urls.len()).saturating_mul(verbs.len()));
        if count > GRANTS_MAX {
            return Err(rule.error(&format!(
                "brings the permissions of the bundle to more than {GRANTS_MAX}"
            )));
        }
        let names: Vec<Option<&str>> = match names.as_slice() {
            [] => vec![None],
            names => names.iter().copied().map(Some).collect(),
        };
        let mut targets: Vec<Target> = urls.into_iter().map(|url| Target::Url(url.to_owned())).collect();
        for group in groups {
            for resource in &resources {
                targets.extend(names.iter().map(|name| Target::Resource {
                    group: group.to_owned(),
                    resource: (*resource).to_owned(),
                    name: name.map(ToOwned::to_owned),
                }));
            }
        }
        for verb in verbs {
            grants.extend(targets.iter().map(|target| Grant {
                is_everywhere,
                target: target.clone(),
                verb: verb.to_owned(),
            }));
        }
    }
    Ok(())
}

/// Returns the grants of `new` that `old` does not allow.
pub(crate) fn gained(old: &Permissions, new: &Permissions) -> Permissions {
    let accounts = new.iter().map(|(account, grants)| {
        let is_new = |grant: &&Grant| !old.get(account).into_iter().flatten().any(|old| old.covers(grant));
        (account.clone(), grants.iter().filter(is_new).cloned().collect())
    });
    accounts.collect()
}

/// Returns the permissions in words, without those that another one includes: a sentence for each account and target, and in
/// brackets the reasons to look twice.
pub(crate) fn sentences(permissions: &Permissions) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (account, grants) in permissions {
        let is_included = |grant: &&Grant| grants.iter().any(|other| other != *grant && other.covers(grant));
        let mut verbs: BTreeMap<(&Target, bool), BTreeSet<&str>> = BTreeMap::new();
        for grant in grants.iter().filter(|grant| !is_included(grant)) {
            verbs
                .entry((&grant.target, grant.is_everywhere))
                .or_default()
                .insert(&grant.verb);
        }
        let sentences = verbs.iter().map(|((target, is_everywhere), verbs)| {
            let place = if *is_everywhere {
                "in all namespaces"
            } else {
                "in the namespaces that it watches"
            };
            let marks = marks(target, verbs).join(", ");
            let marks = if marks.is_empty() { marks } else { format!(" [{marks}]") };
            format!("{account} may {} {place}{marks}", in_words(target, verbs))
        });
        found.extend(sentences);
    }
    found
}

fn in_words(target: &Target, verbs: &BTreeSet<&str>) -> String {
    let mut words = verbs.iter().copied().collect::<Vec<_>>().join(", ");
    for (word, all) in [
        ("do everything with", "*"),
        ("read and write", "create, delete, get, list, patch, update, watch"),
        ("read", "get, list, watch"),
    ] {
        if words == all {
            word.clone_into(&mut words);
        }
    }
    match target {
        Target::Role(role) => format!("do all that the role {role} allows"),
        Target::Url(url) => format!("{words} the URL {url}"),
        Target::Resource { group, resource, name } => {
            let resource = if resource == "*" { "all resources" } else { resource };
            let group = match group.as_str() {
                "" => String::new(),
                "*" => " of all groups".to_owned(),
                group => format!(" of {group}"),
            };
            let name = name.as_ref().map(|name| format!(" named {name}")).unwrap_or_default();
            format!("{words} {resource}{group}{name}")
        }
    }
}

fn marks(target: &Target, verbs: &BTreeSet<&str>) -> Vec<&'static str> {
    let (group, resource) = match target {
        Target::Resource { group, resource, .. } => (group.as_str(), resource.as_str()),
        Target::Url(_) | Target::Role(_) => ("", ""),
    };
    let marks = [
        ("*", verbs.contains("*") || [group, resource].contains(&"*")),
        ("escalate", verbs.contains("escalate")),
        ("bind", verbs.contains("bind")),
        ("impersonate", verbs.contains("impersonate")),
        ("secrets", resource == "secrets"),
        ("nodes/proxy", resource == "nodes/proxy"),
        ("webhooks", resource.ends_with("webhookconfigurations")),
    ];
    marks
        .into_iter()
        .filter_map(|(mark, is_set)| is_set.then_some(mark))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

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

    fn operator(value: Value) -> Manifest {
        Manifest {
            file: "operator.yaml".to_owned(),
            bytes: 0,
            value,
        }
    }

    fn permissions_of(value: &Value) -> Permissions {
        read(&operator(value.clone()), &[]).unwrap()
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
        let Target::Resource { group, resource, name } = &grant.target else {
            panic!("the rules have no URLs");
        };
        let fresh = |text: &str| text.replace('*', "fresh");
        Request {
            is_everywhere: grant.is_everywhere,
            verb: fresh(&grant.verb),
            group: fresh(group),
            resource: fresh(resource),
            name: name.clone().unwrap_or_else(|| "fresh".to_owned()),
        }
    }

    proptest! {
        #[test]
        fn gained_is_allowed_by_new_and_not_by_old(old in (rules(), rules()), new in (rules(), rules())) {
            let (old, new) = (with_rules(&old.0, &old.1), with_rules(&new.0, &new.1));
            let (before, after) = (permissions_of(&old), permissions_of(&new));
            for grant in &gained(&before, &after)["a"] {
                let request = narrowest(grant);
                prop_assert!(allows(&new, &request) && !allows(&old, &request), "{request:?}");
            }
            // And all that the new one allows and the old one does not is covered by something gained.
            let gained = gained(&before, &after);
            for grant in after["a"].iter().filter(|grant| !allows(&old, &narrowest(grant))) {
                prop_assert!(gained["a"].iter().any(|gained| gained.covers(grant)), "{grant:?}");
            }
        }
    }

    #[test]
    fn gained_ignores_grouping_of_rules() {
        let rule =
            |verbs: &[&str], resources: &[&str]| json!({"verbs": verbs, "apiGroups": [""], "resources": resources});
        let old = with_rules(&json!([rule(&["get", "list"], &["pods", "secrets"])]), &json!([]));
        let split = json!([
            rule(&["list"], &["pods"]),
            rule(&["get"], &["pods", "secrets"]),
            rule(&["list"], &["secrets"])
        ]);
        let new = with_rules(&split, &json!([]));
        assert!(sentences(&gained(&permissions_of(&old), &permissions_of(&new))).is_empty());
        assert_eq!(sentences(&permissions_of(&old)), sentences(&permissions_of(&new)));
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
            operator(
                json!({"apiVersion": group, "kind": kind, "roleRef": {"kind": role, "name": name}, "subjects": subjects}),
            )
        };
        let role = json!({
            "apiVersion": group, "kind": "Role", "metadata": {"name": "r"},
            "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
        });
        let manifests = [
            of_role("ClusterRoleBinding", "ClusterRole", "cluster-admin"),
            of_role("RoleBinding", "Role", "r"),
            operator(role),
        ];
        let permissions = read(&operator(with_rules(&json!([]), &rules)), &manifests).unwrap();
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
            with_rules(
                &json!([{"verbs": verbs, "apiGroups": [""], "resources": ["a", "b"]}]),
                &json!([]),
            )
        };
        assert!(read(&operator(rules(GRANTS_MAX / 2)), &[]).is_ok());
        let error = read(&operator(rules(GRANTS_MAX / 2 + 1)), &[]).unwrap_err().to_string();
        assert!(
            error.contains("spec.install.spec.permissions[0].rules[0] brings"),
            "{error}"
        );
    }
}
