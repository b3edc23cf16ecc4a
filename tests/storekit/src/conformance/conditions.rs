use std::sync::Arc;

use super::{both, content, current, head, is_missing, object, put};
use store::{Condition, Store, StoreError};

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    create_only_on_existing_object_conflicts(&*make().await).await;
    replace_of_other_version_conflicts(&*make().await).await;
    replace_of_missing_object_conflicts(&*make().await).await;
    replace_after_a_delete_conflicts(&*make().await).await;
    replace_by_equal_bytes_succeeds(&*make().await).await;
    put_returns_the_version_for_the_next(&*make().await).await;
}

async fn create_only_on_existing_object_conflicts(store: &dyn Store) {
    for key in both(b"first") {
        let created = store.put(&key, "first".into(), Condition::CreateOnly).await;
        created.expect("a key that is free can be created");
        // Other bytes may be refused under an immutable key before the condition is looked at.
        let again: &[&str] = if key == current() {
            &["second", "first", ""]
        } else {
            &["first"]
        };
        for &again in again {
            let put = store.put(&key, again.into(), Condition::CreateOnly).await;
            assert!(
                matches!(&put, Err(StoreError::Conflict { key: named }) if *named == key.to_string()),
                "creating what is there is a Conflict that names the key: {put:?}"
            );
        }
        assert_eq!(content(store, &key).await, "first", "a conflict changes nothing");
    }
}

async fn replace_of_other_version_conflicts(store: &dyn Store) {
    let key = current();
    let first = put(store, &key, "first").await;
    let second = store
        .put(&key, "second".into(), Condition::Replace(first.clone()))
        .await;
    second.expect("the version that is there can be replaced");
    let late = store.put(&key, "late".into(), Condition::Replace(first)).await;
    assert!(
        matches!(late, Err(StoreError::Conflict { .. })),
        "an old version cannot: {late:?}"
    );
    assert_eq!(content(store, &key).await, "second", "a conflict changes nothing");
}

async fn replace_of_missing_object_conflicts(store: &dyn Store) {
    let version = put(store, &object(b"x"), "x").await;
    let replaced = store.put(&current(), "y".into(), Condition::Replace(version)).await;
    assert!(
        matches!(replaced, Err(StoreError::Conflict { .. })),
        "replacing what is not there is a Conflict: {replaced:?}"
    );
    assert!(is_missing(store, &current()).await, "a conflict creates nothing");
}

async fn replace_after_a_delete_conflicts(store: &dyn Store) {
    let key = current();
    let version = put(store, &key, "x").await;
    store.delete(&key).await.expect("an object can be deleted");
    let replaced = store.put(&key, "y".into(), Condition::Replace(version)).await;
    assert!(matches!(replaced, Err(StoreError::Conflict { .. })), "{replaced:?}");
}

async fn replace_by_equal_bytes_succeeds(store: &dyn Store) {
    let key = current();
    let version = put(store, &key, "same").await;
    let replaced = store.put(&key, "same".into(), Condition::Replace(version)).await;
    let version = replaced.expect("equal bytes are no conflict");
    assert_eq!(head(store, &key).await.version, version);
}

async fn put_returns_the_version_for_the_next(store: &dyn Store) {
    let key = current();
    let created = store.put(&key, "0".into(), Condition::CreateOnly).await;
    let mut version = created.expect("the key is free");
    for round in 1..10 {
        let next = store
            .put(&key, format!("{round}").into(), Condition::Replace(version.clone()))
            .await;
        let next = next.expect("the last version can be replaced");
        assert_ne!(next, version, "other bytes, another version");
        assert_eq!(head(store, &key).await.version, next);
        version = next;
    }
}
