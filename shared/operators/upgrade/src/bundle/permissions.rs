//! Permissions of service accounts, as Kubernetes' RBAC evaluates them: rules only allow, and what
//! one allows is the same wherever it is written.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bundle::{BundleError, documents::DocumentField};

/// Maximum number of grants in a bundle. Real bundles have at most a few thousand, and each is
/// compared with each.
const GRANTS_MAX: usize = 20_000;

/// One verb on one thing for a service account. Group, target and verb are `*` for all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    account: String,
    /// True in all namespaces, false in those that the operator is installed for.
    is_everywhere: bool,
    kind: TargetKind,
    /// Group of a resource; empty for the core of Kubernetes.
    group: String,
    /// Resource, with a slash and its subresource if it has one; URL, or role.
    target: String,
    /// Name of the one object; empty for all.
    name: String,
    verb: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TargetKind {
    Resource,
    Url,
    /// A role that the bundle does not have, such as `cluster-admin`.
    Role,
}

pub(crate) type Permissions = BTreeSet<Grant>;

/// Reads the permissions of a ClusterServiceVersion, and those that roles and bindings of the
/// bundle give to service accounts.
pub(crate) fn read(
    operator: &DocumentField<'_>,
    objects: &[DocumentField<'_>],
) -> Result<Permissions, BundleError> {
    let mut grants = GrantList::default();
    for (list, is_everywhere) in [("permissions[]", false), ("clusterPermissions[]", true)] {
        for entry in operator.at("spec.install.spec")?.all(list)? {
            (grants.account, grants.is_everywhere) =
                (entry.text("serviceAccountName")?, is_everywhere);
            grants.add_rules(&entry)?;
        }
    }
    for (kind, is_everywhere) in [("RoleBinding", false), ("ClusterRoleBinding", true)] {
        for binding in objects.iter().filter(|object| object.value["kind"] == kind) {
            let (kind, name) = (binding.text("roleRef.kind")?, binding.text("roleRef.name")?);
            let is_role =
                |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
            let role = objects.iter().find(|object| is_role(object.value));
            for subject in binding.all("subjects[]")? {
                (grants.account, grants.is_everywhere) = (subject.text("name")?, is_everywhere);
                match role {
                    _ if subject.value["kind"] != "ServiceAccount" => {}
                    Some(role) => grants.add_rules(role)?,
                    None => grants.add(TargetKind::Role, ["", name, "", "*"]),
                }
            }
        }
    }
    Ok(grants.found.into_iter().collect())
}

#[derive(Default)]
struct GrantList<'a> {
    /// Holder of the grants to come.
    account: &'a str,
    is_everywhere: bool,
    found: Vec<Grant>,
}

impl GrantList<'_> {
    /// Adds a grant on a group, target and name, with its verb.
    fn add(&mut self, kind: TargetKind, words: [&str; 4]) {
        let [group, target, name, verb] = words.map(ToOwned::to_owned);
        let (account, is_everywhere) = (self.account.to_owned(), self.is_everywhere);
        self.found.push(Grant {
            account,
            is_everywhere,
            kind,
            group,
            target,
            name,
            verb,
        });
    }

    /// Adds the grants of each rule of a role.
    fn add_rules(&mut self, role: &DocumentField<'_>) -> Result<(), BundleError> {
        for rule in role.all("rules[]")? {
            let texts = |list| rule.texts(list);
            let (groups, resources, verbs) = (
                texts("apiGroups[]")?,
                texts("resources[]")?,
                texts("verbs[]")?,
            );
            let (mut names, mut urls) = (texts("resourceNames[]")?, texts("nonResourceURLs[]")?);
            if names.is_empty() {
                names.push("");
            }
            // Kubernetes has no URLs in a namespace.
            urls.retain(|_| self.is_everywhere);
            let sizes = [groups.len(), resources.len(), names.len()];
            let targets = sizes.into_iter().fold(1, usize::saturating_mul);
            let count = verbs
                .len()
                .saturating_mul(targets.saturating_add(urls.len()));
            if count.saturating_add(self.found.len()) > GRANTS_MAX {
                let problem =
                    format!("brings the permissions of the bundle to more than {GRANTS_MAX}");
                return Err(rule.error(&problem));
            }
            for verb in verbs {
                for url in &urls {
                    self.add(TargetKind::Url, ["", url, "", verb]);
                }
                for group in &groups {
                    for resource in &resources {
                        for name in &names {
                            self.add(TargetKind::Resource, [group, resource, name, verb]);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the grants of `new` that `old` does not allow.
pub(crate) fn gained(old: &Permissions, new: &Permissions) -> Permissions {
    let is_new = |grant: &&Grant| !old.iter().any(|old| old.covers(grant));
    new.iter().filter(is_new).cloned().collect()
}

/// Returns the permissions in words, without those that another one includes: a sentence for each
/// account and target, and in brackets the reasons to look twice.
pub(crate) fn sentences(permissions: &Permissions) -> BTreeSet<String> {
    let mut verbs: BTreeMap<Grant, BTreeSet<&str>> = BTreeMap::new();
    for grant in permissions {
        let is_other = |other: &&Grant| *other != grant && other.covers(grant);
        if !permissions.iter().any(|other| is_other(&other)) {
            let mut target = grant.clone();
            target.verb.clear();
            verbs.entry(target).or_default().insert(&grant.verb);
        }
    }
    verbs
        .iter()
        .map(|(grant, verbs)| grant.sentence(verbs))
        .collect()
}

impl Grant {
    /// Returns true if everything that `other` allows is allowed by this one too.
    fn covers(&self, other: &Self) -> bool {
        let or_all = |own: &str, other: &str| own == "*" || own == other;
        let (own, target) = (self.target.as_str(), other.target.as_str());
        let is_pattern = match self.kind {
            // All subresources of a name.
            TargetKind::Resource => own.starts_with("*/") && target.ends_with(&own[1..]),
            TargetKind::Url => own
                .strip_suffix('*')
                .is_some_and(|start| target.starts_with(start)),
            TargetKind::Role => false,
        };
        self.account == other.account
            && self.kind == other.kind
            && (self.is_everywhere || !other.is_everywhere)
            && or_all(&self.verb, &other.verb)
            && or_all(&self.group, &other.group)
            && (or_all(own, target) || is_pattern)
            && (self.name.is_empty() || self.name == other.name)
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
        let resource = if target == "*" {
            "all resources"
        } else {
            target
        };
        let mut what = match (self.kind, group) {
            (TargetKind::Role, _) => format!("do all that the role {target} allows"),
            (TargetKind::Url, _) => format!("{words} the URL {target}"),
            (TargetKind::Resource, "") => format!("{words} {resource}"),
            (TargetKind::Resource, "*") => format!("{words} {resource} of all groups"),
            (TargetKind::Resource, group) => format!("{words} {resource} of {group}"),
        };
        if !self.name.is_empty() {
            what += &format!(" named {}", self.name);
        }
        let place = if self.is_everywhere {
            "in all namespaces"
        } else {
            "in the namespaces that it watches"
        };
        let mut marks = vec![
            "*",
            "escalate",
            "bind",
            "impersonate",
            "secrets",
            "nodes/proxy",
        ];
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
