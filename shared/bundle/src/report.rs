//! Reports for programs and for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;

use crate::{
    BundleIdentity, BundleSize, Contents, Permission, UnsafeChange,
    contents::BundleFacts,
    permissions::{gained, sentences},
};

/// Kinds of facts as JSON names them, each with its title for people.
const FACT_KINDS: [(&str, &str); 9] = [
    ("crdVersions", "Versions of CRDs"),
    ("images", "Images"),
    ("webhooks", "Webhooks"),
    ("installModes", "Install modes"),
    ("minKubeVersion", "Minimum Kubernetes version"),
    ("ownedApis", "APIs owned"),
    ("requiredApis", "APIs required"),
    ("dependencies", "Dependencies"),
    ("objects", "Other objects"),
];

/// All that a bundle brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleReport {
    #[serde(flatten)]
    identity: BundleIdentity,
    crds: BTreeSet<String>,
    permissions: Vec<Permission>,
    #[serde(flatten)]
    facts: BundleFacts,
    size: BundleSize,
}

/// Difference of two bundles. Kinds of facts that are the same in both are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleDifference {
    from: BundleIdentity,
    to: BundleIdentity,
    crds: CrdDifference,
    permissions: PermissionDifference,
    #[serde(flatten)]
    facts: BTreeMap<&'static str, FactDifference>,
    size: SizeDifference,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct CrdDifference {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<CrdChange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct CrdChange {
    name: String,
    #[serde(rename = "unsafe")]
    unsafe_changes: Vec<UnsafeChange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct PermissionDifference {
    gained: Vec<Permission>,
    lost: Vec<Permission>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct FactDifference {
    added: Vec<String>,
    removed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct SizeDifference {
    from: BundleSize,
    to: BundleSize,
}

impl Contents {
    /// Returns all that the bundle brings.
    pub fn report(&self) -> BundleReport {
        BundleReport {
            identity: self.identity.clone(),
            crds: self.crds.keys().cloned().collect(),
            permissions: sentences(&self.permissions),
            facts: self.facts.clone(),
            size: self.size.clone(),
        }
    }

    /// Returns all that an upgrade from this bundle to another one changes.
    pub fn difference(&self, new: &Self) -> BundleDifference {
        let missing = |of: &Self, other: &Self| {
            let missing = of.crds.keys().filter(|name| !other.crds.contains_key(*name));
            missing.cloned().collect()
        };
        let changed = self.crds.iter().filter_map(|(name, crd)| {
            let new = new.crds.get(name).filter(|new| crd.differs(new))?;
            Some(CrdChange {
                name: name.clone(),
                unsafe_changes: crd.unsafe_changes(new),
            })
        });
        let facts = FACT_KINDS.iter().filter_map(|(kind, _)| {
            let none = BTreeSet::new();
            let [old, new] = [self, new].map(|contents| contents.facts.get(kind).unwrap_or(&none));
            let difference = FactDifference {
                added: new.difference(old).cloned().collect(),
                removed: old.difference(new).cloned().collect(),
            };
            (old != new).then_some((*kind, difference))
        });
        BundleDifference {
            from: self.identity.clone(),
            to: new.identity.clone(),
            crds: CrdDifference {
                added: missing(new, self),
                removed: missing(self, new),
                changed: changed.collect(),
            },
            permissions: PermissionDifference {
                gained: sentences(&gained(&self.permissions, &new.permissions)),
                lost: sentences(&gained(&new.permissions, &self.permissions)),
            },
            facts: facts.collect(),
            size: SizeDifference {
                from: self.size.clone(),
                to: new.size.clone(),
            },
        }
    }
}

impl BundleDifference {
    /// Returns all changes for which OLM v1 stops the upgrade, each with the name of its CustomResourceDefinition.
    pub fn unsafe_changes(&self) -> impl Iterator<Item = (&str, &UnsafeChange)> {
        let changed = self.crds.changed.iter();
        changed.flat_map(|crd| crd.unsafe_changes.iter().map(|change| (crd.name.as_str(), change)))
    }
}

impl fmt::Display for BundleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.identity)?;
        section(f, "CustomResourceDefinitions", self.crds.iter())?;
        section(f, "Permissions", self.permissions.iter())?;
        for (kind, title) in FACT_KINDS {
            section(f, title, self.facts.get(kind).into_iter().flatten())?;
        }
        section(f, "Size", [&self.size].into_iter())
    }
}

impl fmt::Display for BundleDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} -> {}", self.from, self.to)?;
        let crds = changes(&self.crds.added, &self.crds.removed);
        section(
            f,
            "CustomResourceDefinitions",
            crds.chain(self.crds.changed.iter().map(CrdChange::to_string)),
        )?;
        let PermissionDifference { gained, lost } = &self.permissions;
        section(f, "Permissions", changes(gained, lost))?;
        for (kind, title) in FACT_KINDS {
            let facts = self.facts.get(kind).into_iter();
            section(f, title, facts.flat_map(|facts| changes(&facts.added, &facts.removed)))?;
        }
        let SizeDifference { from, to } = &self.size;
        let sizes = if from == to { &[][..] } else { &[from, to] };
        section(f, "Size, before and after", sizes.iter())
    }
}

impl fmt::Display for BundleIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (version {})",
            self.name,
            if self.version.is_empty() {
                "unknown"
            } else {
                &self.version
            }
        )
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} may {}", self.service_account, self.may)?;
        if self.marks.is_empty() {
            return Ok(());
        }
        let marks: Vec<&str> = self.marks.iter().copied().collect();
        write!(f, "  [{}]", marks.join(", "))
    }
}

impl fmt::Display for CrdChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "~ {}", self.name)?;
        for UnsafeChange {
            version,
            property,
            rule,
            change,
        } in &self.unsafe_changes
        {
            let place = [version.as_str(), property].into_iter().filter(|part| !part.is_empty());
            let place: String = place.flat_map(|part| [part, " "]).collect();
            write!(f, "\n    unsafe: {place}{rule}: {change}")?;
        }
        Ok(())
    }
}

impl fmt::Display for BundleSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            all,
            largest,
            largest_file,
            limit,
        } = self;
        let percent = largest * 100 / limit;
        write!(
            f,
            "{all} bytes in all; {largest_file} has {largest}, {percent} % of what etcd takes"
        )
    }
}

/// Returns added values with a plus and removed ones with a minus.
fn changes<T: fmt::Display>(added: &[T], removed: &[T]) -> impl Iterator<Item = String> {
    let added = added.iter().map(|text| format!("+ {text}"));
    added.chain(removed.iter().map(|text| format!("- {text}")))
}

/// Writes a title and indented lines, and nothing if there are none.
fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: impl Iterator<Item = impl fmt::Display>) -> fmt::Result {
    for (at, line) in lines.enumerate() {
        if at == 0 {
            writeln!(f, "{title}")?;
        }
        writeln!(f, "  {line}")?;
    }
    Ok(())
}
