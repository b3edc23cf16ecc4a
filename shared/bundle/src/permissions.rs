//! Permissions of service accounts, as Kubernetes' RBAC evaluates them: rules only allow, and what one allows is the same wherever
//! it is written.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{BundleError, manifest::ManifestField};

/// Maximum number of grants in a bundle. Real bundles have at most a few thousand, and each is compared with each.
const GRANTS_MAX: usize = 20_000;

/// One verb on one thing for a service account. Group, target and verb are `*` for all.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    account: String,
    /// True in all namespaces, false in those that the operator is installed for.
    is_everywhere: bool,
    kind: TargetKind,
    /// Group of a resource; empty for the core of Kubernetes.
    group: String,
    /// Resource, with a slash and its subresource if it has one; URL, or role.
    target: String,
    /// Name of the one object; `None` for all.
    name: Option<String>,
    verb: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum TargetKind {
    #[default]
    Resource,
    Url,
    /// A role that the bundle does not have, such as `cluster-admin`.
    Role,
}

pub(crate) type Permissions = BTreeSet<Grant>;

/// Reads the permissions of a ClusterServiceVersion, and those that roles and bindings of the bundle give to service accounts.
pub(crate) fn read(operator: &ManifestField<'_>, objects: &[ManifestField<'_>]) -> Result<Permissions, BundleError> {
    let mut grants = Vec::new();
    for (list, is_everywhere) in [("permissions[]", false), ("clusterPermissions[]", true)] {
        for entry in operator.at("spec.install.spec")?.all(list)? {
            let holder = Grant::none(entry.text("serviceAccountName")?, is_everywhere);
            add_rules(&mut grants, &holder, &entry)?;
        }
    }
    for (kind, is_everywhere) in [("RoleBinding", false), ("ClusterRoleBinding", true)] {
        for binding in objects.iter().filter(|object| object.value["kind"] == kind) {
            let (kind, name) = (binding.text("roleRef.kind")?, binding.text("roleRef.name")?);
            let is_role = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
            let role = objects.iter().find(|object| is_role(object.value));
            for subject in binding.all("subjects[]")? {
                let holder = Grant::none(subject.text("name")?, is_everywhere);
                match role {
                    _ if subject.value["kind"] != "ServiceAccount" => {}
                    Some(role) => add_rules(&mut grants, &holder, role)?,
                    None => grants.push(holder.of(TargetKind::Role, ["", name, "*"], None)),
                }
            }
        }
    }
    Ok(grants.into_iter().collect())
}

/// Adds the grants of each rule of a role.
fn add_rules(grants: &mut Vec<Grant>, holder: &Grant, role: &ManifestField<'_>) -> Result<(), BundleError> {
    for rule in role.all("rules[]")? {
        let texts = |list| rule.texts(list);
        let (verbs, groups, resources) = (texts("verbs[]")?, texts("apiGroups[]")?, texts("resources[]")?);
        let mut names: Vec<_> = texts("resourceNames[]")?.into_iter().map(Some).collect();
        if names.is_empty() {
            names.push(None);
        }
        let mut urls = texts("nonResourceURLs[]")?;
        // Kubernetes has no URLs in a namespace.
        urls.retain(|_| holder.is_everywhere);
        let mut add = |kind, words, name| {
            grants.push(holder.of(kind, words, name));
            match grants.len() {
                0..=GRANTS_MAX => Ok(()),
                _ => Err(rule.error(&format!(
                    "brings the permissions of the bundle to more than {GRANTS_MAX}"
                ))),
            }
        };
        for verb in verbs {
            for url in &urls {
                add(TargetKind::Url, ["", url, verb], None)?;
            }
            for group in &groups {
                for resource in &resources {
                    for name in &names {
                        add(TargetKind::Resource, [group, resource, verb], *name)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns the grants of `new` that `old` does not allow.
pub(crate) fn gained(old: &Permissions, new: &Permissions) -> Permissions {
    let is_new = |grant: &&Grant| !old.iter().any(|old| old.covers(grant));
    new.iter().filter(is_new).cloned().collect()
}

/// Returns the permissions in words, without those that another one includes: a sentence for each account and target, and in
/// brackets the reasons to look twice.
pub(crate) fn sentences(permissions: &Permissions) -> BTreeSet<String> {
    let mut verbs: BTreeMap<Grant, BTreeSet<&str>> = BTreeMap::new();
    for grant in permissions {
        let is_other = |other: &&Grant| *other != grant && other.covers(grant);
        if !permissions.iter().any(|other| is_other(&other)) {
            let words = [&*grant.group, &*grant.target, ""];
            let target = grant.of(grant.kind, words, grant.name.as_deref());
            verbs.entry(target).or_default().insert(&grant.verb);
        }
    }
    verbs.iter().map(|(grant, verbs)| grant.sentence(verbs)).collect()
}

impl Grant {
    /// Returns the start of all grants of an account, which allows nothing.
    fn none(account: &str, is_everywhere: bool) -> Self {
        let account = account.to_owned();
        Self {
            account,
            is_everywhere,
            ..Self::default()
        }
    }

    /// Returns a grant of the same account, with group, target and verb.
    fn of(&self, kind: TargetKind, words: [&str; 3], name: Option<&str>) -> Self {
        let [group, target, verb] = words.map(ToOwned::to_owned);
        Self {
            kind,
            group,
            target,
            verb,
            name: name.map(ToOwned::to_owned),
            ..self.clone()
        }
    }

    /// Returns true if everything that `other` allows is allowed by this one too.
    fn covers(&self, other: &Self) -> bool {
        let or_all = |own: &str, other: &str| own == "*" || own == other;
        let (own, target) = (self.target.as_str(), other.target.as_str());
        let is_pattern = match self.kind {
            // All subresources of a name.
            TargetKind::Resource => own.starts_with("*/") && target.ends_with(&own[1..]),
            TargetKind::Url => own.strip_suffix('*').is_some_and(|start| target.starts_with(start)),
            TargetKind::Role => false,
        };
        self.account == other.account
            && self.kind == other.kind
            && (self.is_everywhere || !other.is_everywhere)
            && or_all(&self.verb, &other.verb)
            && or_all(&self.group, &other.group)
            && (or_all(own, target) || is_pattern)
            && (self.name.is_none() || self.name == other.name)
    }

    /// Returns a sentence about these verbs.
    fn sentence(&self, verbs: &BTreeSet<&str>) -> String {
        let (account, group, target) = (&self.account, self.group.as_str(), self.target.as_str());
        let words = Vec::from_iter(verbs.iter().copied()).join(", ");
        let words = match words.as_str() {
            "*" => "do everything with",
            "create, delete, get, list, patch, update, watch" => "read and write",
            "get, list, watch" => "read",
            words => words,
        };
        let resource = if target == "*" { "all resources" } else { target };
        let mut what = match (self.kind, group) {
            (TargetKind::Role, _) => format!("do all that the role {target} allows"),
            (TargetKind::Url, _) => format!("{words} the URL {target}"),
            (TargetKind::Resource, "") => format!("{words} {resource}"),
            (TargetKind::Resource, "*") => format!("{words} {resource} of all groups"),
            (TargetKind::Resource, group) => format!("{words} {resource} of {group}"),
        };
        if let Some(name) = &self.name {
            what += &format!(" named {name}");
        }
        let place = if self.is_everywhere {
            "in all namespaces"
        } else {
            "in the namespaces that it watches"
        };
        let mut marks = vec!["*", "escalate", "bind", "impersonate", "secrets", "nodes/proxy"];
        marks.retain(|mark| verbs.contains(mark) || [group, target].contains(mark));
        if target.ends_with("webhookconfigurations") {
            marks.push("webhooks");
        }
        let marks = match marks.as_slice() {
            [] => String::new(),
            marks => format!(" [{}]", marks.join(", ")),
        };
        format!("{account} may {what} {place}{marks}")
    }
}

#[cfg(test)]
mod tests;
