//! Reports for programs and for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::Bounds;
use crate::bundle::contents::{BundleIdentity, FACT_KINDS};
use crate::bundle::permissions::{gained, sentences};
use crate::bundle::{BundleError, Contents, UnsafeChange};

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
    /// Texts by the kind of facts, then by `added`, `removed` and `changed`.
    facts: BTreeMap<&'static str, BTreeMap<&'static str, BTreeSet<String>>>,
}

/// Changes as JSON names them, each with its sign for people.
const CHANGES: [(&str, &str); 3] = [("added", "+"), ("removed", "-"), ("changed", "~")];

impl Contents {
    /// Returns all that an upgrade from this bundle to another one changes.
    ///
    /// # Errors
    /// Bounds that are exceeded.
    pub fn difference(&self, new: &Self, bounds: &Bounds) -> Result<BundleDifference, BundleError> {
        let mut facts = BTreeMap::new();
        for ((kind, before), after) in self.facts.iter().zip(new.facts.values()) {
            let changes = [("added", after - before), ("removed", before - after)];
            facts.insert(*kind, BTreeMap::from(changes));
        }
        // Not by their sentences: a wider one may allow what another one did.
        let added = gained(&self.permissions, &new.permissions, bounds)?;
        let removed = gained(&new.permissions, &self.permissions, bounds)?;
        let permissions = [
            ("added", sentences(&added, bounds)?),
            ("removed", sentences(&removed, bounds)?),
        ];
        facts.insert("permissions", permissions.into());
        let mut unsafe_changes = BTreeSet::new();
        let mut changed = BTreeSet::new();
        for (name, crd) in &self.crds {
            if let Some(new) = new.crds.get(name)
                && new != crd
            {
                changed.insert(name.clone());
                unsafe_changes.extend(crd.unsafe_changes(name, new, bounds)?);
            }
        }
        if !changed.is_empty() {
            facts.entry("crds").or_default().insert("changed", changed);
        }
        facts.retain(|_, changes| changes.values().any(|texts| !texts.is_empty()));
        Ok(BundleDifference {
            from: self.identity.clone(),
            to: new.identity.clone(),
            unsafe_changes,
            facts,
        })
    }
}

impl BundleDifference {
    /// Returns the number of sentences about permissions that service accounts gain.
    pub fn gained_permissions(&self) -> usize {
        match self.facts.get("permissions") {
            Some(changes) => changes["added"].len(),
            None => 0,
        }
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.identity)?;
        FACT_KINDS.iter().try_for_each(|(kind, title)| {
            section(f, title, self.facts.get(kind).into_iter().flatten())
        })
    }
}

impl fmt::Display for BundleDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} -> {}", self.from, self.to)?;
        section(f, "Unsafe changes", &self.unsafe_changes)?;
        for (kind, title) in &FACT_KINDS {
            let mut lines = Vec::new();
            for (change, sign) in CHANGES {
                let texts = self.facts.get(kind).and_then(|texts| texts.get(change));
                for text in texts.into_iter().flatten() {
                    lines.push(format!("{sign} {text}"));
                }
            }
            section(f, title, lines)?;
        }
        Ok(())
    }
}

impl fmt::Display for BundleIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{} (version {})", self.name, self.version);
        f.write_str(&model::text::line(&text, LINE_CHARS))
    }
}

impl fmt::Display for UnsafeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = [&*self.crd, &self.version, &self.property].join(" ");
        write!(f, "{} {}: {}", place.trim_end(), self.rule, self.change)
    }
}

/// Writes a title and indented lines, and nothing if there are none.
fn section(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    lines: impl IntoIterator<Item = impl fmt::Display>,
) -> fmt::Result {
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
