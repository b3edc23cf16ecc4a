//! Operations that every store has in the same way: reads of whole objects, of documents, and of
//! objects that are damaged, missing or larger than recorded.

use model::{Catalogs, DocumentError, Key, Kind, ObjectDigest};
use store::{ObjectState, ReadError, StoreExt as _, check_object, read_object};
use storekit::{MemoryStore, conformance::put};

#[tokio::test]
async fn read_all_at_the_limit_succeeds_and_above_fails() {
    let store = MemoryStore::new();
    put(&store, &Key::Catalogs, vec![7; 50_000]).await;
    let (bytes, info) = store.read_all(&Key::Catalogs, 50_000).await.unwrap();
    assert_eq!((bytes.len(), info.size), (50_000, 50_000));
    let error = store.read_all(&Key::Catalogs, 49_999).await.unwrap_err();
    let expected = "catalogs.json has 50000 bytes, more than the 49999 that are read at once";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn read_document_of_broken_bytes_names_key_and_cause() {
    let store = MemoryStore::new();
    put(&store, &Key::Catalogs, "{").await;
    let error = store
        .read_document::<Catalogs>(&Key::Catalogs)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "catalogs.json cannot be used");
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
    assert!(
        matches!(source, Some(DocumentError::Malformed { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn object_that_is_damaged_missing_or_larger_is_told_apart() {
    const BYTES: &[u8] = b"stored bytes";
    let store = MemoryStore::new();
    let object = ObjectDigest::of(BYTES).with_kind(Kind::Package);
    let check = async || check_object(&store, &object).await.unwrap();
    let read = async || read_object(&store, &object).await;
    put(&store, &object.key(), BYTES).await;
    assert_eq!(check().await, ObjectState::Intact);
    assert_eq!(read().await.unwrap(), BYTES);

    let digest = ObjectDigest {
        size: 3,
        ..object.digest
    };
    let error = read_object(&store, &digest.with_kind(Kind::Package))
        .await
        .unwrap_err();
    assert!(error.is_damage() && !error.is_not_found(), "{error}");

    store.corrupt(&object.key(), "other bytes!");
    let error = read().await.unwrap_err();
    assert!(matches!(error, ReadError::Damaged { .. }), "{error}");
    assert!(error.is_damage());
    assert_eq!(check().await, ObjectState::Damaged);

    store.lose(&object.key());
    let error = read().await.unwrap_err();
    assert!(error.is_not_found() && !error.is_damage(), "{error}");
    assert_eq!(check().await, ObjectState::Missing);
}
