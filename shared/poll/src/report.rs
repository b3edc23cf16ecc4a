use std::time::Duration;

use layout::{CatalogName, Outcome, Sha256, Snapshot};
use serde::{Serialize, Serializer};

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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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

    /// Notes how it ended, and after how long.
    pub(crate) fn end(&mut self, ended: Result<Outcome, PollError>, duration: Duration) {
        (self.outcome, self.error) = match ended {
            Ok(outcome) => (outcome, None),
            Err(error @ (PollError::Suspicious(_) | PollError::Rejected(_))) => (Outcome::Refused, Some(error)),
            Err(error) => (Outcome::Failed, Some(error)),
        };
        self.duration = duration;
    }

    /// The error and its causes on one line.
    pub fn error_text(&self) -> Option<String> {
        self.error.as_ref().map(|error| telemetry::line(error))
    }
}

/// A report as programs read it: the one shape for all doors.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    catalog: &'a str,
    outcome: &'static str,
    error: Option<String>,
    digest: Option<&'a str>,
    content_hash: Option<Sha256>,
    serial: Option<u64>,
    changes: &'a Changes,
    layers_fetched: usize,
    layers_skipped: usize,
    bytes_pulled: u64,
    objects_published: u64,
    bytes_published: u64,
    duration_ms: u128,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = Line {
            catalog: self.catalog.as_str(),
            outcome: self.outcome.as_str(),
            error: self.error_text(),
            digest: self.digest.as_deref(),
            content_hash: self.content_hash,
            serial: self.serial,
            changes: &self.changes,
            layers_fetched: self.layers_fetched,
            layers_skipped: self.layers_skipped,
            bytes_pulled: self.bytes_pulled,
            objects_published: self.objects_published,
            bytes_published: self.bytes_published,
            duration_ms: self.duration.as_millis(),
        };
        line.serialize(serializer)
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
