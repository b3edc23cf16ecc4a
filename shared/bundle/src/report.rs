//! Reports for programs and for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;

use crate::{
    BundleIdentity, Contents, UnsafeChange,
    contents::BundleFacts,
    permissions::{gained, sentences},
};

/// Kinds of facts as JSON names them, each with its title for people.
const FACT_KINDS: [(&str, &str); 12] = [
    ("crds", "CustomResourceDefinitions"),
    ("crdVersions", "Versions of CustomResourceDefinitions"),
    ("permissions", "Permissions"),
    ("images", "Images"),
    ("webhooks", "Webhooks"),
    ("installModes", "Install modes"),
    ("minKubeVersion", "Minimum version of Kubernetes"),
    ("ownedApis", "APIs owned"),
    ("requiredApis", "APIs required"),
    ("dependencies", "Dependencies"),
    ("objects", "Other objects"),
    ("size", "Size"),
];
/// Longest line for people, in characters.
const LINE_CHARS: usize = 400;

/// All that a bundle brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleReport {
    #[serde(flatten)]
    identity: BundleIdentity,
    #[serde(flatten)]
    facts: BundleFacts,
}

/// Difference of two bundles. Kinds of facts that are the same in both are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleDifference {
    from: BundleIdentity,
    to: BundleIdentity,
    /// Changes for which OLM v1 stops the upgrade.
    #[serde(rename = "unsafe")]
    pub unsafe_changes: BTreeSet<UnsafeChange>,
    #[serde(flatten)]
    facts: BTreeMap<&'static str, FactDifference>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct FactDifference {
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    changed: BTreeSet<String>,
}

impl Contents {
    /// Returns all that the bundle brings.
    pub fn report(&self) -> BundleReport {
        BundleReport {
            identity: self.identity.clone(),
            facts: self.facts.clone(),
        }
    }

    /// Returns all that an upgrade from this bundle to another one changes.
    pub fn difference(&self, new: &Self) -> BundleDifference {
        let mut facts = BTreeMap::new();
        for (kind, _) in FACT_KINDS {
            let none = BTreeSet::new();
            let [before, after] = [self, new].map(|contents| contents.facts.get(kind).unwrap_or(&none));
            facts.insert(
                kind,
                FactDifference {
                    added: after - before,
                    removed: before - after,
                    changed: BTreeSet::new(),
                },
            );
        }
        // Not by their sentences: a wider one may allow what another one did.
        let permissions = FactDifference {
            added: sentences(&gained(&self.permissions, &new.permissions)),
            removed: sentences(&gained(&new.permissions, &self.permissions)),
            changed: BTreeSet::new(),
        };
        facts.insert("permissions", permissions);
        let mut unsafe_changes = BTreeSet::new();
        for (name, crd) in &self.crds {
            if let Some(new) = new.crds.get(name).filter(|new| *new != crd) {
                facts.entry("crds").or_default().changed.insert(name.clone());
                let of_crd = |change| UnsafeChange {
                    crd: name.clone(),
                    ..change
                };
                unsafe_changes.extend(crd.unsafe_changes(new).into_iter().map(of_crd));
            }
        }
        facts.retain(|_, difference| *difference != FactDifference::default());
        BundleDifference {
            from: self.identity.clone(),
            to: new.identity.clone(),
            unsafe_changes,
            facts,
        }
    }
}

impl fmt::Display for BundleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.identity)?;
        FACT_KINDS.iter().try_for_each(|(kind, title)| {
            let facts = self.facts.get(kind).into_iter().flatten();
            section(f, title, facts.cloned())
        })
    }
}

impl fmt::Display for BundleDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} -> {}", self.from, self.to)?;
        section(f, "Unsafe changes", self.unsafe_changes.iter().map(ToString::to_string))?;
        let none = FactDifference::default();
        FACT_KINDS.iter().try_for_each(|(kind, title)| {
            let FactDifference {
                added,
                removed,
                changed,
            } = self.facts.get(kind).unwrap_or(&none);
            let signs = [("+", added), ("-", removed), ("~", changed)].into_iter();
            section(
                f,
                title,
                signs.flat_map(|(sign, texts)| texts.iter().map(move |text| format!("{sign} {text}"))),
            )
        })
    }
}

impl fmt::Display for BundleIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (version {})", self.name, self.version)
    }
}

impl fmt::Display for UnsafeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.crd, &self.version, &self.property]
            .into_iter()
            .filter(|part| !part.is_empty())
        {
            write!(f, "{part} ")?;
        }
        write!(f, "{}: {}", self.rule, self.change)
    }
}

/// Writes a title and indented lines, and nothing if there are none.
fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: impl Iterator<Item = String>) -> fmt::Result {
    for (at, line) in lines.enumerate() {
        if at == 0 {
            writeln!(f, "{title}")?;
        }
        // A catalog may hold what changes the terminal.
        writeln!(f, "  {}", model::text::line(&line, LINE_CHARS))?;
    }
    Ok(())
}
