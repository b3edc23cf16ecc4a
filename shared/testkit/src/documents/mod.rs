//! Builders of the stored documents with defaults, so that a new field touches the builder and not every test.

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

#[cfg(test)]
mod tests {
    use model::{Key, ManifestEntry};

    use super::*;

    const LINE: &str = "{\"name\":\"db\",\"schema\":\"olm.package\"}\n";

    #[test]
    fn snapshot_builder_builds_every_object_that_the_snapshot_names() {
        let built = SnapshotBuilder::new()
            .package("db", LINE)
            .package("", "{}\n")
            .identity()
            .build();
        let keys: Vec<Key> = built.snapshot.objects().iter().map(ManifestEntry::key).collect();
        assert!(keys.iter().all(|key| built.objects.contains_key(key)));
        assert_eq!(built.objects.len(), keys.len() + 1, "and the Snapshot itself");
        assert_eq!(built.all, format!("{{}}\n{LINE}").as_bytes());
        assert!(built.objects.contains_key(&current(&built.snapshot).snapshot.key()));
    }

    #[test]
    fn current_builder_continues_the_state_before() {
        let snapshot = snapshot(&[("db", LINE)]);
        let first = current(&snapshot);
        let second = CurrentBuilder::new(&snapshot).after(Some(&first)).build();
        assert_eq!((first.serial, second.serial), (1, 2));
        assert_eq!(second.previous, first.as_previous());
        assert_eq!(second.published_at, first_published_at() + Duration::from_secs(60));
    }
}
