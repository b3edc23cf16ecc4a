use std::{sync::atomic::AtomicU64, time::Duration};

use model::{CatalogName, Current, ObjectStats, Outcome, Sha256, ValidationCounts};
use publish::Env;
use serde::Serialize;
use trust::Trust;

/// Options of copies, imports and repairs.
#[derive(Debug, Clone, Default)]
pub struct SyncOptions {
    /// Name of the origin in `status.json` and logs. It must not hold a secret. Default: empty.
    pub source: String,
    /// Allows a copy with a lower serial than the published one. Default: false.
    pub rollback: bool,
    /// Allows a copy that does not descend from the published state. Default: false.
    pub diverged: bool,
    /// Allows any copy of the same source that was published after the newest state of the store,
    /// whatever its history: each delivery on a medium may begin a history of its own. Default:
    /// false.
    pub later: bool,
    /// Fetches `all.*`, the index and the image instead of making them from the Shards. Default:
    /// false.
    pub fetch_all: bool,
    /// Hashes again what the published state names, and replaces what is damaged. Default: false.
    pub recheck: bool,
    /// Keys of which one must have signed the pointer. Default: none, signatures are not verified.
    pub trust: Option<Trust>,
    /// Clock and random numbers. Default: those of the system.
    pub env: Env,
}

/// Result of copying or importing one catalog.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncReport {
    /// Name of the catalog in both stores.
    pub catalog: CatalogName,
    /// Outcome of the copy, as in `status.json`.
    pub outcome: Outcome,
    /// Error and its causes on one line, unless the outcome is a success.
    pub error: Option<String>,
    /// Content hash of the published state, if it is known.
    pub content_hash: Option<Sha256>,
    /// Serial of the published state, if it is known.
    pub serial: Option<u64>,
    /// Findings of the validation by the origin, if this copy published its content.
    #[serde(skip)]
    pub validation: Option<ValidationCounts>,
    /// True if the origin lists the catalog and answers that it has no such pointer. A mirror does
    /// that for a catalog whose availability is `Unavailable`. The outcome is then
    /// [`Outcome::Unchanged`].
    pub not_served: bool,
    /// Objects and documents that came from the origin.
    pub moved: ObjectStats,
    /// Objects that were made from the Shards.
    pub rebuilt: ObjectStats,
    /// Objects that the store had already.
    pub kept: ObjectStats,
    /// Keys of objects that this program would make with other bytes, for example with another
    /// compressor. They were moved.
    pub not_rebuilt: Vec<String>,
    /// Keys of damaged objects that were replaced.
    pub repaired: Vec<String>,
    /// Size of the new `all.json.gz`, in bytes, to compare `moved` with; 0 if the content did not
    /// change.
    pub full_bytes: u64,
    /// Duration of the copy with all its attempts.
    #[serde(rename = "durationMs", serialize_with = "publish::milliseconds")]
    pub duration: Duration,
}

impl SyncReport {
    pub(crate) fn new(catalog: CatalogName) -> Self {
        Self {
            catalog,
            outcome: Outcome::Failed,
            error: None,
            content_hash: None,
            serial: None,
            validation: None,
            not_served: false,
            moved: ObjectStats::default(),
            rebuilt: ObjectStats::default(),
            kept: ObjectStats::default(),
            not_rebuilt: Vec::new(),
            repaired: Vec::new(),
            full_bytes: 0,
            duration: Duration::ZERO,
        }
    }

    pub(crate) const fn describe(&mut self, current: &Current) {
        self.content_hash = Some(current.content_hash);
        self.serial = Some(current.serial);
    }
}

/// Counters of running copies, for a progress display.
#[derive(Debug, Default)]
pub struct CopyProgress {
    /// Number of objects that are known to be missing.
    pub objects: AtomicU64,
    /// Number of missing objects that were fetched or made.
    pub done: AtomicU64,
    /// Number of bytes received from the origin.
    pub moved: AtomicU64,
    /// Number of bytes that the store had already or that were made from Shards.
    pub saved: AtomicU64,
}
