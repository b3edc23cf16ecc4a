//! Operations that every store has in the same way.

use catalog_mirror_store::{Condition, ReadError, Store as _, StoreExt as _};
use model::{Catalogs, DocumentError, Key};
use storekit::MemoryStore;

#[tokio::test]
async fn read_all_at_the_limit_succeeds_and_above_fails() {
    let store = MemoryStore::new();
    store
        .put(&Key::Catalogs, vec![7; 50_000].into(), Condition::Always)
        .await
        .unwrap();
    let (bytes, info) = store.read_all(&Key::Catalogs, 50_000).await.unwrap();
    assert_eq!((bytes.len(), info.size), (50_000, 50_000));
    let error = store.read_all(&Key::Catalogs, 49_999).await.unwrap_err();
    assert!(
        matches!(
            error,
            ReadError::TooLarge {
                size: 50_000,
                max: 49_999,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn read_document_of_broken_bytes_names_key_and_cause() {
    let store = MemoryStore::new();
    store.put(&Key::Catalogs, "{".into(), Condition::Always).await.unwrap();
    let error = store.read_document::<Catalogs>(&Key::Catalogs).await.unwrap_err();
    assert_eq!(error.to_string(), "catalogs.json cannot be used");
    assert!(matches!(
        error,
        ReadError::Document {
            source: DocumentError::Malformed { .. },
            ..
        }
    ));
}
