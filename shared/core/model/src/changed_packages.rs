use serde::Serialize;

use crate::Snapshot;

/// Packages that a publication added, removed and changed, in byte order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChangedPackages {
    /// Names of packages that only the new state has.
    pub added: Vec<String>,
    /// Names of packages that only the old state had.
    pub removed: Vec<String>,
    /// Names of packages whose lines differ.
    pub changed: Vec<String>,
}

impl ChangedPackages {
    /// Compares two Snapshots package by package. Without `before`, every package is new.
    pub fn between(before: Option<&Snapshot>, after: &Snapshot) -> Self {
        let mut changes = Self::default();
        for shard in &after.packages {
            match before.and_then(|before| before.package(&shard.name)) {
                None => changes.added.push(shard.name.clone()),
                // The lines decide: another compressor gives the same content other stored bytes.
                Some(old) if old.lines != shard.lines => changes.changed.push(shard.name.clone()),
                Some(_) => {}
            }
        }
        for shard in before.into_iter().flat_map(|before| &before.packages) {
            if after.package(&shard.name).is_none() {
                changes.removed.push(shard.name.clone());
            }
        }
        changes
    }

    /// Returns true if no package was added, removed or changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}
