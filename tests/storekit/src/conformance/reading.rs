use std::sync::Arc;

use super::{
    both, collect, content, current, get, head, is_missing, is_unmodified, pattern, put, ranged,
};
use store::{Condition, Fetched, Get, Store, StoreError};

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    get_of_missing_object_is_not_found(&*make().await).await;
    get_after_put_returns_its_bytes(&*make().await).await;
    get_range_beyond_the_end_is_cut(&*make().await).await;
    get_range_outside_the_object_fails(&*make().await).await;
    get_unless_same_version_is_not_modified(&*make().await).await;
    get_unless_after_change_returns_the_new_bytes(&*make().await).await;
    delete_frees_the_key(&*make().await).await;
    flush_keeps_all_objects(&*make().await).await;
}

async fn get_of_missing_object_is_not_found(store: &dyn Store) {
    for key in both(b"x") {
        assert!(is_missing(store, &key).await, "head of nothing is NotFound");
        for get in [Get::default(), ranged(0..1)] {
            let read = store.get(&key, get).await;
            let is_named =
                matches!(&read, Err(StoreError::NotFound(named)) if *named == key.to_string());
            assert!(is_named, "get of nothing is NotFound and names the key");
        }
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

async fn get_range_beyond_the_end_is_cut(store: &dyn Store) {
    let bytes = pattern(100_000);
    for key in both(&bytes) {
        put(store, &key, bytes.clone()).await;
        let inside = [0..1, 0..100_000, 1..99_999, 99_999..100_000];
        for range in inside
            .into_iter()
            .chain([50_000..100_001, 70_000..u64::MAX])
        {
            let cut = range.start as usize..range.end.min(100_000) as usize;
            let get = get(store, &key, ranged(range.clone())).await;
            let head = head(store, &key).await;
            assert_eq!(get.info, head, "{range:?} names the whole object's size");
            assert!(collect(get.body).await == bytes[cut], "{range:?} of {key}");
        }
    }
}

async fn get_range_outside_the_object_fails(store: &dyn Store) {
    for (key, size) in [0, 10]
        .into_iter()
        .flat_map(|size| both(&pattern(size)).map(|key| (key, size)))
    {
        put(store, &key, pattern(size)).await;
        let size = size as u64;
        for range in [size..size + 1, size + 1..size + 2, size..u64::MAX] {
            let read = store.get(&key, ranged(range.clone())).await;
            assert!(
                matches!(&read, Err(StoreError::RangeNotSatisfiable { size: named, .. }) if *named == size),
                "{range:?} of {size} bytes is RangeNotSatisfiable and names the size"
            );
        }
    }
}

async fn get_unless_same_version_is_not_modified(store: &dyn Store) {
    for key in both(b"same") {
        let version = put(store, &key, "same").await;
        let other = put(store, &model::Key::Catalogs, "other").await;
        let own = is_unmodified(store, &key, &version).await;
        assert!(own, "`unless` with its version is NotModified");
        let foreign = is_unmodified(store, &key, &other).await;
        assert!(!foreign, "`unless` with another version reads");
        let unless_and_range = Get {
            range: Some(0..2),
            unless: Some(version),
        };
        let read = store.get(&key, unless_and_range).await;
        let is_unmodified = matches!(read, Ok(Fetched::NotModified));
        assert!(is_unmodified, "`unless` comes before the range");
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
