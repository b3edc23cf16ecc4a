use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use model::Key;

use super::{
    both, collect, content, current, get, head, is_missing, is_unmodified, pattern, put, ranged,
};
use store::{Condition, Fetched, Get, ReadStore, Store, StoreError, Version};

/// Checks the promises of [`ReadStore`] on a store that has these objects. Their bytes are read
/// from it again and again.
///
/// # Panics
/// At the first promise that is not kept, with its name.
pub async fn read_conformance(store: &dyn ReadStore, objects: &BTreeMap<Key, Bytes>) {
    assert!(!objects.is_empty(), "there is something to read");
    for (key, bytes) in objects {
        whole_object_is_read(store, key, bytes).await;
        parts_are_read(store, key, bytes).await;
        range_outside_fails(store, key, bytes.len() as u64).await;
        same_version_is_not_modified(store, key, bytes).await;
    }
    let absent = Key::Current("a-name-without-a-catalog".parse().expect("a name"));
    missing_is_not_found(store, &absent).await;
    missing_is_not_found(store, &super::object(b"bytes of no object")).await;
}

async fn whole_object_is_read(store: &dyn ReadStore, key: &Key, bytes: &Bytes) {
    let object = get(store, key, Get::default()).await;
    assert_eq!(object.info, head(store, key).await, "get and head agree");
    assert_eq!(object.info.size, bytes.len() as u64, "{key}");
    assert!(collect(object.body).await == bytes, "every byte of {key}");
}

async fn parts_are_read(store: &dyn ReadStore, key: &Key, bytes: &Bytes) {
    let size = bytes.len() as u64;
    let whole = head(store, key).await;
    let middle = size / 2;
    for range in [0..1, middle..size, middle..size + 1, size - 1..u64::MAX] {
        let cut = range.start as usize..range.end.min(size) as usize;
        let part = get(store, key, ranged(range.clone())).await;
        assert_eq!(part.info, whole, "{range:?} names the whole object's size");
        let found = collect(part.body).await;
        assert!(found == bytes[cut], "{range:?} of {key}");
    }
}

async fn range_outside_fails(store: &dyn ReadStore, key: &Key, size: u64) {
    for range in [size..size + 1, size + 1..size + 2, size..u64::MAX] {
        let read = store.get(key, ranged(range.clone())).await;
        assert!(
            matches!(&read, Err(StoreError::RangeNotSatisfiable { size: named, .. }) if *named == size),
            "{range:?} of {size} bytes is RangeNotSatisfiable and names the size"
        );
    }
}

async fn same_version_is_not_modified(store: &dyn ReadStore, key: &Key, bytes: &Bytes) {
    let version = head(store, key).await.version;
    let own = is_unmodified(store, key, &version).await;
    assert!(own, "`unless` with its version is NotModified");
    let unless_and_range = Get {
        range: Some(0..1),
        unless: Some(version),
    };
    let read = store.get(key, unless_and_range).await;
    let is_unmodified = matches!(read, Ok(Fetched::NotModified));
    assert!(is_unmodified, "`unless` comes before the range");
    let unless_another = Get {
        range: None,
        unless: Some(Version("no version of any store".to_owned())),
    };
    let object = get(store, key, unless_another).await;
    assert!(collect(object.body).await == bytes, "another version reads");
}

async fn missing_is_not_found(store: &dyn ReadStore, key: &Key) {
    assert!(is_missing(store, key).await, "head of nothing is NotFound");
    for get in [Get::default(), ranged(0..1)] {
        let read = store.get(key, get).await;
        let is_named =
            matches!(&read, Err(StoreError::NotFound(named)) if *named == key.to_string());
        assert!(is_named, "get of nothing is NotFound and names the key");
    }
}

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    get_of_missing_object_is_not_found(&*make().await).await;
    get_after_put_returns_its_bytes(&*make().await).await;
    stored_objects_pass_the_checks_of_reading(&*make().await).await;
    get_range_of_an_empty_object_fails(&*make().await).await;
    get_unless_version_of_another_object_reads(&*make().await).await;
    get_unless_after_change_returns_the_new_bytes(&*make().await).await;
    delete_frees_the_key(&*make().await).await;
    flush_keeps_all_objects(&*make().await).await;
}

async fn get_of_missing_object_is_not_found(store: &dyn Store) {
    for key in both(b"x") {
        missing_is_not_found(store, &key).await;
    }
}

/// Checks objects of several sizes: of one byte, of one chunk, of many.
async fn stored_objects_pass_the_checks_of_reading(store: &dyn Store) {
    for size in [1, 10, 100_000] {
        let bytes = pattern(size);
        let mut objects = BTreeMap::new();
        for key in both(&bytes) {
            put(store, &key, bytes.clone()).await;
            objects.insert(key, bytes.clone());
        }
        read_conformance(store, &objects).await;
    }
}

async fn get_after_put_returns_its_bytes(store: &dyn Store) {
    for bytes in ["first", "second, longer", "3", ""] {
        for key in both(bytes.as_bytes()) {
            let version = put(store, &key, bytes).await;
            let head = head(store, &key).await;
            assert_eq!(
                (head.size, &head.version),
                (bytes.len() as u64, &version),
                "{key}"
            );
            let object = get(store, &key, Get::default()).await;
            assert_eq!(object.info, head, "get and head agree");
            assert_eq!(
                collect(object.body).await,
                bytes,
                "a put replaces the whole {key}"
            );
        }
    }
}

async fn get_range_of_an_empty_object_fails(store: &dyn Store) {
    for key in both(b"") {
        put(store, &key, "").await;
        range_outside_fails(store, &key, 0).await;
    }
}

async fn get_unless_version_of_another_object_reads(store: &dyn Store) {
    for key in both(b"same") {
        put(store, &key, "same").await;
        let other = put(store, &Key::Catalogs, "other").await;
        let foreign = is_unmodified(store, &key, &other).await;
        assert!(!foreign, "`unless` with another version reads");
    }
}

/// Changes often and with equal sizes: a store that looks at times and sizes alone misses one now
/// and then.
async fn get_unless_after_change_returns_the_new_bytes(store: &dyn Store) {
    let key = current();
    let mut version = put(store, &key, "000").await;
    for round in 1..=50 {
        let bytes = format!("{round:03}");
        let next = put(store, &key, bytes.clone()).await;
        assert_ne!(next, version, "other bytes, another version");
        let unless = Get {
            unless: Some(version),
            range: None,
        };
        let object = get(store, &key, unless).await;
        assert_eq!(object.info.version, next);
        assert_eq!(collect(object.body).await, bytes);
        assert!(is_unmodified(store, &key, &next).await);
        version = next;
    }
}

async fn delete_frees_the_key(store: &dyn Store) {
    for key in both(b"x") {
        store
            .delete(&key)
            .await
            .expect("deleting nothing is no error");
        let version = put(store, &key, "x").await;
        store.delete(&key).await.expect("an object can be deleted");
        assert!(is_missing(store, &key).await, "a deleted object is gone");
        let is_unmodified = is_unmodified(store, &key, &version).await;
        assert!(!is_unmodified, "a deleted object is not unmodified");
        store
            .delete(&key)
            .await
            .expect("deleting twice is no error");
        let put = store.put(&key, "x".into(), Condition::CreateOnly).await;
        put.expect("after a delete the key is free");
    }
}

async fn flush_keeps_all_objects(store: &dyn Store) {
    store.flush().await.expect("flushing nothing is no error");
    for key in both(b"x") {
        put(store, &key, "x").await;
        store.flush().await.expect("what was put can be flushed");
        assert_eq!(content(store, &key).await, "x");
    }
}
