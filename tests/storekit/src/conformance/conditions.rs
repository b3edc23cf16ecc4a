use std::sync::Arc;

use super::{WAYS, Way, both, content, current, head, is_missing, put, write};
use model::Key;
use store::{Condition, Store, StoreError, Version};

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    for way in WAYS {
        create_only_on_existing_object_conflicts(&*make().await, way).await;
        replace_of_missing_object_conflicts(&*make().await, way).await;
        replace_takes_the_last_version_only(&*make().await, way).await;
    }
}

/// Checks that a write was a Conflict that names its key.
fn assert_conflict(written: &Result<Version, StoreError>, key: &Key) {
    let is_conflict =
        matches!(written, Err(StoreError::Conflict(named)) if *named == key.to_string());
    assert!(is_conflict, "a Conflict that names {key}, not {written:?}");
}

async fn create_only_on_existing_object_conflicts(store: &dyn Store, way: Way) {
    for key in both(b"first") {
        let created = write(store, way, &key, "first", Condition::CreateOnly).await;
        created.expect("a key that is free can be created");
        // Other bytes may be refused under an immutable key before the condition is looked at.
        let again: &[&str] = if key == current() {
            &["second", "first", ""]
        } else {
            &["first"]
        };
        for &again in again {
            assert_conflict(
                &write(store, way, &key, again, Condition::CreateOnly).await,
                &key,
            );
        }
        assert_eq!(
            content(store, &key).await,
            "first",
            "a conflict changes nothing"
        );
    }
}

async fn replace_of_missing_object_conflicts(store: &dyn Store, way: Way) {
    let version = put(store, &current(), "x").await;
    store
        .delete(&current())
        .await
        .expect("an object can be deleted");
    for key in [current(), Key::Catalogs] {
        let replaced = write(store, way, &key, "y", Condition::Replace(version.clone())).await;
        assert_conflict(&replaced, &key);
        assert!(is_missing(store, &key).await, "a conflict creates nothing");
    }
}

async fn replace_takes_the_last_version_only(store: &dyn Store, way: Way) {
    let key = current();
    let created = write(store, way, &key, "0", Condition::CreateOnly).await;
    let mut version = created.expect("the key is free");
    for round in 1..10 {
        let bytes = round.to_string();
        let next = write(
            store,
            way,
            &key,
            bytes.clone(),
            Condition::Replace(version.clone()),
        )
        .await;
        let next = next.expect("the last version can be replaced");
        assert_ne!(next, version, "other bytes, another version");
        assert_eq!(head(store, &key).await.version, next);
        let late = write(store, way, &key, "late", Condition::Replace(version)).await;
        assert_conflict(&late, &key);
        assert_eq!(
            content(store, &key).await,
            bytes,
            "a conflict changes nothing"
        );
        version = next;
    }
    let same = write(store, way, &key, "9", Condition::Replace(version)).await;
    let same = same.expect("equal bytes are no conflict");
    assert_eq!(head(store, &key).await.version, same);
    let always = write(store, way, &key, "always", Condition::Always).await;
    always.expect("a write without a condition succeeds");
    assert_eq!(content(store, &key).await, "always");
}
