use std::sync::Arc;

use bytes::Bytes;
use model::{Current, ManifestEntry, Outcome, Snapshot};
use publish::Transaction;

/// Result of comparing the origin with the store.
pub(crate) enum Planned {
    /// The store has the state of the origin.
    Unchanged(Box<Transaction>),
    /// The origin has an earlier state of the same history, as a CDN that lags behind another one
    /// does.
    Behind {
        /// Serial of the state at the origin.
        theirs: u64,
        /// Serial of the state in the store.
        ours: u64,
    },
    /// The state of the origin is to be copied.
    Copy(Box<Plan>),
}

/// State of the origin that is to be copied. Nothing is written yet.
pub(crate) struct Plan {
    pub(crate) transaction: Transaction,
    /// Pointer of the origin, byte for byte.
    pub(crate) bytes: Bytes,
    /// Pointer of the origin after parsing.
    pub(crate) next: Current,
    pub(crate) snapshot: Arc<Snapshot>,
    /// Stored bytes of the Snapshot, unless the store has them.
    pub(crate) snapshot_bytes: Option<Bytes>,
    /// Objects that the store lacks or holds damaged.
    pub(crate) missing: Vec<ManifestEntry>,
}

impl Plan {
    /// Returns the outcome of a copy that succeeds.
    pub(crate) fn outcome(&self) -> Outcome {
        let Some(ours) = self.transaction.pointer() else {
            return Outcome::Published;
        };
        match &ours.current {
            Some(_) if ours.bytes == self.bytes => Outcome::Unchanged,
            Some(before) if before.content_hash == self.next.content_hash => {
                Outcome::SourceDigestUpdated
            }
            _ => Outcome::Published,
        }
    }
}
