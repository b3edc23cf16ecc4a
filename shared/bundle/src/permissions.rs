//! Permissions of service accounts, as Kubernetes' RBAC evaluates them: rules only allow, and what one allows is the same wherever
//! it is written.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    BundleError,
    manifest::{BundleManifest, ManifestField},
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
pub(crate) fn read(operator: &BundleManifest, manifests: &[BundleManifest]) -> Result<Permissions, BundleError> {
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
    rules: &ManifestField<'_>,
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
mod tests;
