use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use layout::{Form, Key};

use super::{collect, content, get, pattern, put, whole};
use crate::{Body, Condition, Get, Store};

/// Many times what any store reads at once.
const LARGE: usize = 9_000_001;

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    a_large_object_streams_whole(&*make().await).await;
    a_range_of_a_large_object_is_exact(&*make().await).await;
    a_body_need_not_be_read(&*make().await).await;
}

pub(super) async fn held(make: &impl AsyncFn() -> Arc<dyn Store>) {
    a_reader_keeps_what_is_replaced(&*make().await).await;
    a_reader_keeps_what_is_deleted(&*make().await).await;
}

async fn stage_large(store: &dyn Store, key: &Key) -> Bytes {
    let large = pattern(LARGE);
    let mut staged = store.stage().await.expect("an object can be staged");
    for piece in large.chunks(1 << 20) {
        let written = staged.write(Bytes::copy_from_slice(piece)).await;
        written.expect("a piece can be written");
    }
    staged.commit(key, Condition::Always).await.expect("no condition");
    large
}

async fn a_large_object_streams_whole(store: &dyn Store) {
    let key = whole(Form::Zstd);
    let large = stage_large(store, &key).await;
    let object = get(store, &key, Get::default()).await;
    assert_eq!(object.info.size, LARGE as u64);
    assert!(collect(object.body).await == large, "every byte, in order");
}

async fn a_range_of_a_large_object_is_exact(store: &dyn Store) {
    let key = whole(Form::Zstd);
    let large = stage_large(store, &key).await;
    for range in [
        1..LARGE - 1,
        5_000_000..5_000_001,
        1_048_575..4_194_305,
        LARGE - 1..LARGE,
    ] {
        let part = Get {
            range: Some(range.start as u64..range.end as u64),
            unless: None,
        };
        let body = get(store, &key, part).await.body;
        assert!(collect(body).await == large[range.clone()], "{range:?}");
    }
}

async fn a_reader_keeps_what_is_replaced(store: &dyn Store) {
    let key = whole(Form::Zstd);
    let large = stage_large(store, &key).await;
    let (first, rest) = begin(store, &key).await;
    put(store, &key, "other").await;
    assert!(
        [first, collect(rest).await].concat() == large,
        "a body is of one object to its end"
    );
    assert_eq!(content(store, &key).await, "other");
}

async fn a_reader_keeps_what_is_deleted(store: &dyn Store) {
    let key = whole(Form::Zstd);
    let large = stage_large(store, &key).await;
    let (first, rest) = begin(store, &key).await;
    store.delete(&key).await.expect("an object can be deleted");
    assert!(
        [first, collect(rest).await].concat() == large,
        "a body outlives its object"
    );
}

async fn begin(store: &dyn Store, key: &Key) -> (Bytes, Body) {
    let mut body = get(store, key, Get::default()).await.body;
    let first = body.try_next().await.expect("a chunk").expect("not the end");
    (first, body)
}

async fn a_body_need_not_be_read(store: &dyn Store) {
    let key = whole(Form::Zstd);
    let large = stage_large(store, &key).await;
    drop(get(store, &key, Get::default()).await);
    drop(begin(store, &key).await);
    assert!(content(store, &key).await == large);
}
