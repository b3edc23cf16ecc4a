//! Permissions of service accounts, as Kubernetes' RBAC evaluates them: rules only allow, and what
//! one allows is the same wherever it is written.

mod coverage;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use self::coverage::Coverage;
use crate::bundle::BundleError;
use crate::bundle::documents::DocumentField;
use crate::{Bounds, Exceeded};

/// Maximum number of grants in a bundle. Real bundles have at most a few thousand.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum TargetKind {
    Resource,
    Url,
    /// A role that the bundle does not have, such as `cluster-admin`.
    Role,
}

pub(crate) type Permissions = BTreeSet<Grant>;

/// Service account that is granted something, and where.
#[derive(Debug, Clone, Copy)]
struct Holder<'a> {
    account: &'a str,
    is_everywhere: bool,
}

/// Reads the permissions of a ClusterServiceVersion, and those that roles and bindings of the
/// bundle give to service accounts.
pub(crate) fn read(
    operator: &DocumentField<'_>,
    objects: &[DocumentField<'_>],
    bounds: &Bounds,
) -> Result<Permissions, BundleError> {
    let mut grants = GrantList {
        found: Vec::new(),
        bounds,
    };
    let install = operator.at("spec.install.spec")?;
    for (list, is_everywhere) in [("permissions[]", false), ("clusterPermissions[]", true)] {
        for entry in install.all(list)? {
            let holder = Holder {
                account: entry.text("serviceAccountName")?,
                is_everywhere,
            };
            grants.add_rules(holder, &entry)?;
        }
    }
    let mut named = HashMap::new();
    for object in objects {
        let kind = object.value["kind"].as_str();
        let name = object.value["metadata"]["name"].as_str();
        named.entry((kind, name)).or_insert(object);
    }
    for (kind, is_everywhere) in [("RoleBinding", false), ("ClusterRoleBinding", true)] {
        for binding in objects.iter().filter(|object| object.value["kind"] == kind) {
            let role_kind = binding.text("roleRef.kind")?;
            let role_name = binding.text("roleRef.name")?;
            let role = named.get(&(Some(role_kind), Some(role_name)));
            for subject in binding.all("subjects[]")? {
                let holder = Holder {
                    account: subject.text("name")?,
                    is_everywhere,
                };
                if subject.value["kind"] != "ServiceAccount" {
                    continue;
                }
                match role {
                    Some(role) => grants.add_rules(holder, role)?,
                    None => grants.add_role(holder, role_name)?,
                }
            }
        }
    }
    Ok(grants.found.into_iter().collect())
}

struct GrantList<'b> {
    found: Vec<Grant>,
    bounds: &'b Bounds,
}

impl GrantList<'_> {
    fn add(&mut self, grant: Grant) -> Result<(), Exceeded> {
        let texts = [
            &grant.account,
            &grant.group,
            &grant.target,
            &grant.name,
            &grant.verb,
        ];
        let bytes: usize = texts.into_iter().map(String::len).sum();
        self.bounds.answer(size_of::<Grant>() + bytes)?;
        self.found.push(grant);
        Ok(())
    }

    /// Adds all that a role allows that the bundle does not have.
    fn add_role(&mut self, holder: Holder<'_>, role: &str) -> Result<(), Exceeded> {
        self.add(Grant {
            account: holder.account.to_owned(),
            is_everywhere: holder.is_everywhere,
            kind: TargetKind::Role,
            group: String::new(),
            target: role.to_owned(),
            name: String::new(),
            verb: "*".to_owned(),
        })
    }

    /// Adds the grants of each rule of a role.
    fn add_rules(
        &mut self,
        holder: Holder<'_>,
        role: &DocumentField<'_>,
    ) -> Result<(), BundleError> {
        for field in role.all("rules[]")? {
            let mut rule = PolicyRule::read(&field)?;
            self.bounds.budget.charge(1 + rule.words() as u64)?;
            // Kubernetes has no URLs in a namespace.
            if !holder.is_everywhere {
                rule.urls.clear();
            }
            if rule.grants().saturating_add(self.found.len()) > GRANTS_MAX {
                let problem =
                    format!("brings the permissions of the bundle to more than {GRANTS_MAX}");
                return Err(field.error(&problem));
            }
            self.add_rule(holder, &rule)?;
        }
        Ok(())
    }

    fn add_rule(&mut self, holder: Holder<'_>, rule: &PolicyRule<'_>) -> Result<(), Exceeded> {
        for verb in &rule.verbs {
            for url in &rule.urls {
                self.add(Grant {
                    account: holder.account.to_owned(),
                    is_everywhere: holder.is_everywhere,
                    kind: TargetKind::Url,
                    group: String::new(),
                    target: (*url).to_owned(),
                    name: String::new(),
                    verb: (*verb).to_owned(),
                })?;
            }
            for group in &rule.groups {
                for resource in &rule.resources {
                    for name in &rule.names {
                        self.add(Grant {
                            account: holder.account.to_owned(),
                            is_everywhere: holder.is_everywhere,
                            kind: TargetKind::Resource,
                            group: (*group).to_owned(),
                            target: (*resource).to_owned(),
                            name: (*name).to_owned(),
                            verb: (*verb).to_owned(),
                        })?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Rule of a role.
struct PolicyRule<'a> {
    verbs: Vec<&'a str>,
    groups: Vec<&'a str>,
    resources: Vec<&'a str>,
    /// Names of objects; one that is empty for all.
    names: Vec<&'a str>,
    urls: Vec<&'a str>,
}

impl<'a> PolicyRule<'a> {
    fn read(rule: &DocumentField<'a>) -> Result<Self, BundleError> {
        let mut names = rule.texts("resourceNames[]")?;
        if names.is_empty() {
            names.push("");
        }
        Ok(Self {
            verbs: rule.texts("verbs[]")?,
            groups: rule.texts("apiGroups[]")?,
            resources: rule.texts("resources[]")?,
            names,
            urls: rule.texts("nonResourceURLs[]")?,
        })
    }

    /// Returns the number of words in it.
    fn words(&self) -> usize {
        let lists = [
            &self.verbs,
            &self.groups,
            &self.resources,
            &self.names,
            &self.urls,
        ];
        lists.into_iter().map(Vec::len).sum()
    }

    /// Returns the number of grants.
    fn grants(&self) -> usize {
        let resources = self
            .groups
            .len()
            .saturating_mul(self.resources.len())
            .saturating_mul(self.names.len());
        let targets = resources.saturating_add(self.urls.len());
        targets.saturating_mul(self.verbs.len())
    }
}

/// Returns the grants of `new` that `old` does not allow.
pub(crate) fn gained(
    old: &Permissions,
    new: &Permissions,
    bounds: &Bounds,
) -> Result<Permissions, Exceeded> {
    let coverage = Coverage::new(old);
    let mut gained = Permissions::new();
    for grant in new {
        bounds.budget.charge_bytes(grant.target.len())?;
        if !coverage.covers(grant) {
            gained.insert(grant.clone());
        }
    }
    Ok(gained)
}

/// Returns the permissions in words, without those that another one includes: a sentence for each
/// account and target, and in brackets the reasons to look twice.
pub(crate) fn sentences(
    permissions: &Permissions,
    bounds: &Bounds,
) -> Result<BTreeSet<String>, Exceeded> {
    let coverage = Coverage::new(permissions);
    let mut verbs: BTreeMap<Grant, BTreeSet<&str>> = BTreeMap::new();
    for grant in permissions {
        bounds.budget.charge_bytes(grant.target.len())?;
        if !coverage.includes_in_another(grant) {
            let target = Grant {
                verb: String::new(),
                ..grant.clone()
            };
            verbs.entry(target).or_default().insert(&grant.verb);
        }
    }
    let mut sentences = BTreeSet::new();
    for (grant, verbs) in &verbs {
        let sentence = grant.sentence(verbs);
        bounds.answer(sentence.len())?;
        sentences.insert(sentence);
    }
    Ok(sentences)
}

impl Grant {
    /// Returns a sentence about these verbs.
    fn sentence(&self, verbs: &BTreeSet<&str>) -> String {
        let listed = Vec::from_iter(verbs.iter().copied()).join(", ");
        let words = match listed.as_str() {
            "*" => "do everything with",
            "create, delete, get, list, patch, update, watch" => "read and write",
            "get, list, watch" => "read",
            words => words,
        };
        let target = self.target.as_str();
        let resource = match target {
            "*" => "all resources",
            target => target,
        };
        let mut what = match (self.kind, self.group.as_str()) {
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
        marks
            .retain(|mark| verbs.contains(mark) || self.group.as_str() == *mark || target == *mark);
        if target.ends_with("webhookconfigurations") {
            marks.push("webhooks");
        }
        let mut sentence = format!("{} may {what} {place}", self.account);
        if !marks.is_empty() {
            sentence += &format!(" [{}]", marks.join(", "));
        }
        sentence
    }
}

#[cfg(test)]
mod tests;
