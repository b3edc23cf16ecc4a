use std::time::Duration;

use layout::{CatalogName, Outcome, Sha256};

use crate::SyncError;

/// What one copy of one catalog did.
#[derive(Debug)]
pub struct Report {
    /// The catalog.
    pub catalog: CatalogName,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it ended so, if not well.
    pub error: Option<SyncError>,
    /// What is published now, if that is known.
    pub content_hash: Option<Sha256>,
    /// Its serial.
    pub serial: Option<u64>,
    /// What came from the origin, documents included.
    pub moved: Tally,
    /// What was made here of the Shards.
    pub rebuilt: Tally,
    /// What was there already.
    pub kept: Tally,
    /// What could not be made here, because another version made the original otherwise; it was moved.
    pub not_rebuilt: Vec<String>,
    /// Damaged objects of the store that were replaced.
    pub repaired: Vec<String>,
    /// What a download of the new `all.json.gz` would have moved, had there been no copy; 0 if nothing is new.
    pub full_bytes: u64,
    /// How long it took.
    pub duration: Duration,
}

/// Some objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// How many.
    pub objects: u64,
    /// Their bytes as they are stored.
    pub bytes: u64,
}

impl Report {
    pub(crate) fn new(catalog: CatalogName) -> Self {
        Self {
            catalog,
            outcome: Outcome::Failed,
            error: None,
            content_hash: None,
            serial: None,
            moved: Tally::default(),
            rebuilt: Tally::default(),
            kept: Tally::default(),
            not_rebuilt: Vec::new(),
            repaired: Vec::new(),
            full_bytes: 0,
            duration: Duration::ZERO,
        }
    }

    /// The error and its causes on one line.
    pub fn error_text(&self) -> Option<String> {
        self.error.as_ref().map(|error| telemetry::chain(error))
    }
}

impl Tally {
    pub(crate) const fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}
