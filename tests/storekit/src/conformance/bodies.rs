use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use model::Key;

use super::{Exceptions, collect, current, get, object, pattern, put, ranged, stage};
use store::{Body, Condition, Get, Store};

/// Size of a large object in bytes: many times what any store reads at once.
const LARGE: usize = 9_000_001;

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>, without: Exceptions) {
    get_of_large_object_is_exact(&*make().await).await;
    if !without.held_readers {
        begun_body_outlives_its_object(&*make().await).await;
    }
}

/// Stores a large object under the key that `key` returns for its bytes.
async fn stage_large(store: &dyn Store, key: fn(&[u8]) -> Key) -> (Key, Bytes) {
    let large = pattern(LARGE);
    let key = key(&large);
    let staged = stage(store, large.chunks(1 << 20).map(Bytes::copy_from_slice)).await;
    staged
        .commit(&key, Condition::Always)
        .await
        .expect("no condition");
    (key, large)
}

async fn get_of_large_object_is_exact(store: &dyn Store) {
    let (key, large) = stage_large(store, object).await;
    for range in [
        1..LARGE - 1,
        5_000_000..5_000_001,
        1_048_575..4_194_305,
        LARGE - 1..LARGE,
    ] {
        let part = range.start as u64..range.end as u64;
        let body = get(store, &key, ranged(part)).await.body;
        assert!(collect(body).await == large[range.clone()], "{range:?}");
    }
    // A body that is dropped early harms nothing.
    drop(get(store, &key, Get::default()).await);
    drop(begin(store, &key).await);
    let object = get(store, &key, Get::default()).await;
    assert_eq!(object.info.size, LARGE as u64);
    assert!(collect(object.body).await == large, "every byte, in order");
}

async fn begun_body_outlives_its_object(store: &dyn Store) {
    for of in [(|_| current()) as fn(&[u8]) -> Key, object] {
        let (key, large) = stage_large(store, of).await;
        let (first, rest) = begin(store, &key).await;
        if key == current() {
            put(store, &key, "other").await;
        } else {
            store.delete(&key).await.expect("an object can be deleted");
        }
        let whole = [first, collect(rest).await].concat();
        assert!(
            whole == large,
            "a body of {key} is of one object to its end"
        );
    }
}

async fn begin(store: &dyn Store, key: &Key) -> (Bytes, Body) {
    let mut body = get(store, key, Get::default()).await.body;
    let first = body
        .try_next()
        .await
        .expect("a chunk")
        .expect("not the end");
    (first, body)
}
