use std::{ops::Range, sync::Arc};

use super::{both, collect, content, current, get, is_missing, is_unmodified, pattern, put, shard};
use crate::{Condition, Fetched, Get, Store, StoreError};

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    what_is_not_there_is_not_found(&*make().await).await;
    what_was_put_is_read_back(&*make().await).await;
    an_empty_object_is_an_object(&*make().await).await;
    get_head_and_put_agree(&*make().await).await;
    ranges_are_cut_to_the_object(&*make().await).await;
    ranges_beyond_the_object_are_refused(&*make().await).await;
    an_unchanged_object_is_not_sent_again(&*make().await).await;
    a_change_is_seen_at_once(&*make().await).await;
    what_is_deleted_is_gone(&*make().await).await;
    time_does_not_go_back(&*make().await).await;
    flush_keeps_everything(&*make().await).await;
}

async fn what_is_not_there_is_not_found(store: &dyn Store) {
    for key in both() {
        assert!(is_missing(store, &key).await, "head of nothing is NotFound");
        let ranged = Get {
            range: Some(0..1),
            unless: None,
        };
        for get in [Get::default(), ranged] {
            let read = store.get(&key, get).await;
            assert!(
                matches!(&read, Err(StoreError::NotFound { key: named }) if *named == key.to_string()),
                "get of nothing is NotFound and names the key"
            );
        }
    }
}

async fn what_was_put_is_read_back(store: &dyn Store) {
    for key in both() {
        put(store, &key, "first").await;
        assert_eq!(content(store, &key).await, "first");
        put(store, &key, "second, longer").await;
        assert_eq!(
            content(store, &key).await,
            "second, longer",
            "a put replaces the whole object"
        );
        put(store, &key, "3").await;
        assert_eq!(content(store, &key).await, "3", "nothing of a longer object stays");
    }
}

async fn an_empty_object_is_an_object(store: &dyn Store) {
    for key in both() {
        put(store, &key, "").await;
        assert_eq!(content(store, &key).await, "");
        assert_eq!(store.head(&key).await.expect("there is one").size, 0);
    }
}

async fn get_head_and_put_agree(store: &dyn Store) {
    for key in both() {
        let version = put(store, &key, "abc").await;
        let head = store.head(&key).await.expect("there is one");
        assert_eq!(head.size, 3);
        assert_eq!(head.version, version, "put and head name the same version");
        assert_eq!(get(store, &key, Get::default()).await.info, head, "get and head agree");
        let part = Get {
            range: Some(1..2),
            unless: None,
        };
        assert_eq!(
            get(store, &key, part).await.info,
            head,
            "a range names the whole object's size"
        );
    }
}

async fn ranges_are_cut_to_the_object(store: &dyn Store) {
    let bytes = pattern(100_000);
    for key in both() {
        put(store, &key, bytes.clone()).await;
        for range in [
            0..1,
            0..100_000,
            1..99_999,
            99_999..100_000,
            50_000..100_001,
            70_000..u64::MAX,
        ] {
            let cut = range.start as usize..range.end.min(100_000) as usize;
            let get = get(store, &key, ranged(range.clone())).await;
            assert!(collect(get.body).await == bytes[cut], "{range:?} of {key}");
        }
    }
}

async fn ranges_beyond_the_object_are_refused(store: &dyn Store) {
    for (key, size) in both().into_iter().flat_map(|key| [(key.clone(), 0), (key, 10)]) {
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

fn ranged(range: Range<u64>) -> Get {
    Get {
        range: Some(range),
        unless: None,
    }
}

async fn an_unchanged_object_is_not_sent_again(store: &dyn Store) {
    for key in both() {
        let version = put(store, &key, "same").await;
        let other = put(store, &current_of_another(), "other").await;
        assert!(
            is_unmodified(store, &key, &version).await,
            "`unless` with its version is NotModified"
        );
        assert!(
            !is_unmodified(store, &key, &other).await,
            "`unless` with another version reads"
        );
        let unless_and_range = Get {
            range: Some(0..2),
            unless: Some(version),
        };
        let read = store.get(&key, unless_and_range).await;
        assert!(
            matches!(read, Ok(Fetched::NotModified)),
            "`unless` comes before the range"
        );
    }
}

fn current_of_another() -> layout::Key {
    layout::Key::Current("another".parse().expect("a name"))
}

/// Often, and with equal sizes: a store that looks at times and sizes alone misses one now and then.
async fn a_change_is_seen_at_once(store: &dyn Store) {
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

async fn what_is_deleted_is_gone(store: &dyn Store) {
    for key in both() {
        store.delete(&key).await.expect("deleting nothing is no error");
        let version = put(store, &key, "x").await;
        store.delete(&key).await.expect("an object can be deleted");
        assert!(is_missing(store, &key).await, "a deleted object is gone");
        assert!(
            !is_unmodified(store, &key, &version).await,
            "a deleted object is not unmodified"
        );
        store.delete(&key).await.expect("deleting twice is no error");
        let put = store.put(&key, "y".into(), Condition::CreateOnly).await;
        put.expect("after a delete the key is free");
    }
}

async fn time_does_not_go_back(store: &dyn Store) {
    put(store, &shard(1), "first").await;
    put(store, &shard(2), "second").await;
    let first = store.head(&shard(1)).await.expect("there is one").modified;
    let second = store.head(&shard(2)).await.expect("there is one").modified;
    assert!(
        first <= second,
        "what was written later is not older: {first:?}, {second:?}"
    );
}

async fn flush_keeps_everything(store: &dyn Store) {
    store.flush().await.expect("flushing nothing is no error");
    for key in both() {
        put(store, &key, "x").await;
        store.flush().await.expect("what was put can be flushed");
        assert_eq!(content(store, &key).await, "x");
    }
}
