//! The answers about an object that is damaged, missing or larger than recorded.

use catalog_mirror_store::{Condition, ObjectState, ReadError, Store as _, check_object, read_object};
use model::{Kind, ObjectDigest, ObjectRef};
use storekit::MemoryStore;

const BYTES: &[u8] = b"stored bytes";

async fn store() -> (MemoryStore, ObjectRef) {
    let store = MemoryStore::default();
    let object = ObjectDigest::of(BYTES).with_kind(Kind::Package);
    let key = object.key();
    store.put(&key, BYTES.into(), Condition::CreateOnly).await.unwrap();
    (store, object)
}

async fn check(store: &MemoryStore, object: &ObjectRef) -> ObjectState {
    check_object(store, object).await.unwrap()
}

#[tokio::test]
async fn check_object_tells_intact_damaged_and_missing() {
    let (store, object) = store().await;
    assert_eq!(check(&store, &object).await, ObjectState::Intact);
    store.corrupt(&object.key(), "other bytes!");
    assert_eq!(check(&store, &object).await, ObjectState::Damaged);
    store.lose(&object.key());
    assert_eq!(check(&store, &object).await, ObjectState::Missing);
}

#[tokio::test]
async fn read_object_refuses_damaged_and_larger_objects() {
    let (store, object) = store().await;
    assert_eq!(read_object(&store, &object).await.unwrap(), BYTES);
    store.corrupt(&object.key(), "other bytes!");
    let error = read_object(&store, &object).await.unwrap_err();
    assert!(
        matches!(error, ReadError::Damaged { .. }) && error.is_damage(),
        "{error}"
    );
    let shorter = ObjectDigest {
        size: 3,
        ..object.digest
    };
    let error = read_object(&store, &shorter.with_kind(Kind::Package))
        .await
        .unwrap_err();
    assert!(error.is_damage() && !error.is_not_found(), "{error}");
    store.lose(&object.key());
    let error = read_object(&store, &object).await.unwrap_err();
    assert!(error.is_not_found() && !error.is_damage(), "{error}");
}
