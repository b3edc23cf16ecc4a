//! Reports for programs and for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;

use crate::{
    Contents, UnsafeChange,
    contents::BundleIdentity,
    permissions::{gained, sentences},
};

/// Kinds of facts as JSON names them, each with its title for people.
pub(crate) const FACT_KINDS: [(&str, &str); 12] = [
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

/// Difference of two bundles. Kinds of facts that are the same in both are left out.
#[derive(Debug, Serialize)]
pub struct BundleDifference {
    from: BundleIdentity,
    to: BundleIdentity,
    /// Changes for which OLM v1 stops the upgrade.
    #[serde(rename = "unsafe")]
    pub unsafe_changes: BTreeSet<UnsafeChange>,
    #[serde(flatten)]
    facts: BTreeMap<&'static str, FactDifference>,
}

#[derive(Debug, Serialize)]
struct FactDifference {
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    changed: BTreeSet<String>,
}

impl Contents {
    /// Returns all that an upgrade from this bundle to another one changes.
    pub fn difference(&self, new: &Self) -> BundleDifference {
        let (mut unsafe_changes, mut changed_crds) = (BTreeSet::new(), BTreeSet::new());
        for (name, crd) in &self.crds {
            if let Some(new) = new.crds.get(name).filter(|new| *new != crd) {
                changed_crds.insert(name.clone());
                unsafe_changes.extend(crd.unsafe_changes(name, new));
            }
        }
        let gained = |old: &Self, new: &Self| sentences(&gained(&old.permissions, &new.permissions));
        let mut facts = BTreeMap::new();
        for ((kind, before), after) in self.facts.iter().zip(new.facts.values()) {
            let mut difference = FactDifference {
                added: after - before,
                removed: before - after,
                changed: BTreeSet::new(),
            };
            match *kind {
                "crds" => difference.changed.append(&mut changed_crds),
                // Not by their sentences: a wider one may allow what another one did.
                "permissions" => (difference.added, difference.removed) = (gained(self, new), gained(new, self)),
                _ => {}
            }
            if difference.signs().iter().any(|(_, texts)| !texts.is_empty()) {
                facts.insert(*kind, difference);
            }
        }
        BundleDifference {
            from: self.identity.clone(),
            to: new.identity.clone(),
            unsafe_changes,
            facts,
        }
    }
}

impl FactDifference {
    fn signs(&self) -> [(&'static str, &BTreeSet<String>); 3] {
        [("+", &self.added), ("-", &self.removed), ("~", &self.changed)]
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.identity)?;
        FACT_KINDS
            .iter()
            .try_for_each(|(kind, title)| section(f, title, self.facts.get(kind).into_iter().flatten()))
    }
}

impl fmt::Display for BundleDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} -> {}", self.from, self.to)?;
        section(f, "Unsafe changes", &self.unsafe_changes)?;
        FACT_KINDS.iter().try_for_each(|(kind, title)| {
            let signs = self.facts.get(kind).into_iter().flat_map(FactDifference::signs);
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
        let Self {
            crd,
            version,
            property,
            rule,
            change,
        } = self;
        for part in [crd, version, property].into_iter().filter(|part| !part.is_empty()) {
            write!(f, "{part} ")?;
        }
        write!(f, "{rule}: {change}")
    }
}

/// Writes a title and indented lines, and nothing if there are none.
fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: impl IntoIterator<Item = impl fmt::Display>) -> fmt::Result {
    let mut title = Some(title);
    for line in lines {
        if let Some(title) = title.take() {
            writeln!(f, "{title}")?;
        }
        // A catalog may hold what changes the terminal.
        writeln!(f, "  {}", model::text::line(&line.to_string(), LINE_CHARS))?;
    }
    Ok(())
}
