use std::time::Duration;

use layout::{CatalogName, Outcome, Sha256, Snapshot};

use crate::PollError;

/// What one turn of one catalog did.
#[derive(Debug)]
pub struct Report {
    /// The catalog.
    pub catalog: CatalogName,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it ended so, if not well.
    pub error: Option<PollError>,
    /// The digest that the source resolved to.
    pub digest: Option<String>,
    /// What is published now, if anything is known of it.
    pub content_hash: Option<Sha256>,
    /// Its serial.
    pub serial: Option<u64>,
    /// What changed against the previous publication.
    pub changes: Changes,
    /// Bytes that came over the wire.
    pub bytes_pulled: u64,
    /// Layers that were fetched.
    pub layers_fetched: usize,
    /// Layers that were known to hold no FBC.
    pub layers_skipped: usize,
    /// Objects written to the store.
    pub objects_published: u64,
    /// Their bytes.
    pub bytes_published: u64,
    /// How long it took.
    pub duration: Duration,
}

/// Packages that a publication added, removed and changed, in byte order.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Changes {
    /// New packages.
    pub added: Vec<String>,
    /// Packages that are gone.
    pub removed: Vec<String>,
    /// Packages with other content.
    pub changed: Vec<String>,
}

impl Report {
    pub(crate) fn new(catalog: CatalogName) -> Self {
        Self {
            catalog,
            outcome: Outcome::Failed,
            error: None,
            digest: None,
            content_hash: None,
            serial: None,
            changes: Changes::default(),
            bytes_pulled: 0,
            layers_fetched: 0,
            layers_skipped: 0,
            objects_published: 0,
            bytes_published: 0,
            duration: Duration::ZERO,
        }
    }

    /// The error and its causes on one line.
    pub fn error_text(&self) -> Option<String> {
        self.error.as_ref().map(|error| telemetry::chain(error))
    }
}

impl Changes {
    /// Compares two Snapshots package by package.
    pub fn between(before: Option<&Snapshot>, after: &Snapshot) -> Self {
        let mut changes = Self::default();
        for shard in &after.packages {
            match before.and_then(|before| before.package(&shard.name)) {
                None => changes.added.push(shard.name.clone()),
                Some(old) if old.sha256 != shard.sha256 => changes.changed.push(shard.name.clone()),
                Some(_) => {}
            }
        }
        let gone = before.into_iter().flat_map(|before| &before.packages);
        let gone = gone.filter(|shard| after.package(&shard.name).is_none());
        changes.removed = gone.map(|shard| shard.name.clone()).collect();
        changes
    }

    /// Whether no package differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}
