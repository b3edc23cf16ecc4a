//! Builders of the stored documents with defaults, so that a new field touches the builder and not
//! every test.

mod current;
mod snapshot;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use current::{CurrentBuilder, current};
pub use snapshot::{BuiltSnapshot, SnapshotBuilder, snapshot};

/// Returns the time of the first publication that a [`CurrentBuilder`] makes: 2026-09-21T14:13:20Z.
pub fn first_published_at() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

/// Source of the documents that the builders make.
pub const SOURCE: &str = "quay.io/ns/catalog:v1";
