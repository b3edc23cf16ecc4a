use std::sync::Arc;

use futures_util::TryStreamExt as _;
use layout::Key;

use super::{both, content, current, is_missing, pattern, put, shard};
use crate::{Condition, Staged, Store, StoreError, Version};

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    pieces_are_joined_in_order(&*make().await).await;
    nothing_shows_before_the_commit(&*make().await).await;
    nothing_stays_after_a_drop(&*make().await).await;
    a_commit_without_writes_is_an_empty_object(&*make().await).await;
    conditions_hold_at_the_commit(&*make().await).await;
    objects_are_staged_side_by_side(&*make().await).await;
}

async fn staged(store: &dyn Store, pieces: impl IntoIterator<Item = bytes::Bytes>) -> Box<dyn Staged> {
    let mut staged = store.stage().await.expect("an object can be staged");
    for piece in pieces {
        staged.write(piece).await.expect("a piece can be written");
    }
    staged
}

async fn commit(staged: Box<dyn Staged>, key: &Key, condition: Condition) -> Version {
    staged.commit(key, condition).await.expect("the condition holds")
}

async fn pieces_are_joined_in_order(store: &dyn Store) {
    let whole = pattern(700_000);
    for key in both() {
        let (small, large) = (whole.slice(..10_000), whole.slice(10_000..));
        let pieces = small.chunks(7).chain([&[][..]]).chain(large.chunks(300_000));
        let staged = staged(store, pieces.map(bytes::Bytes::copy_from_slice)).await;
        let version = commit(staged, &key, Condition::CreateOnly).await;
        assert!(content(store, &key).await == whole, "the pieces of {key} in order");
        let head = store.head(&key).await.expect("there is one");
        assert_eq!((head.size, head.version), (700_000, version));
    }
}

async fn nothing_shows_before_the_commit(store: &dyn Store) {
    let staged = staged(store, [pattern(600_000)]).await;
    let listed: Vec<_> = store.list("").try_collect().await.expect("a store can be listed");
    assert!(listed.is_empty(), "what is staged is not listed: {listed:?}");
    assert!(is_missing(store, &shard(0)).await);
    commit(staged, &shard(0), Condition::Always).await;
    assert!(!is_missing(store, &shard(0)).await);
}

async fn nothing_stays_after_a_drop(store: &dyn Store) {
    drop(staged(store, [pattern(600_000)]).await);
    let listed: Vec<_> = store.list("").try_collect().await.expect("a store can be listed");
    assert!(listed.is_empty(), "what was dropped is gone: {listed:?}");
}

async fn a_commit_without_writes_is_an_empty_object(store: &dyn Store) {
    for key in both() {
        commit(staged(store, []).await, &key, Condition::CreateOnly).await;
        assert_eq!(content(store, &key).await, "");
    }
}

async fn conditions_hold_at_the_commit(store: &dyn Store) {
    let first = put(store, &current(), "first").await;
    let early = staged(store, ["early".into()]).await;
    let late = staged(store, ["late".into()]).await;
    commit(early, &current(), Condition::Replace(first.clone())).await;
    let error = late.commit(&current(), Condition::Replace(first)).await;
    assert!(
        matches!(error, Err(StoreError::Conflict { .. })),
        "an old version: {error:?}"
    );
    let again = staged(store, ["again".into()]).await;
    let error = again.commit(&current(), Condition::CreateOnly).await;
    assert!(
        matches!(error, Err(StoreError::Conflict { .. })),
        "a key that is taken: {error:?}"
    );
    assert_eq!(content(store, &current()).await, "early", "a conflict changes nothing");
    commit(staged(store, ["always".into()]).await, &current(), Condition::Always).await;
    assert_eq!(content(store, &current()).await, "always");
}

async fn objects_are_staged_side_by_side(store: &dyn Store) {
    let mut many = Vec::new();
    for number in 0..4 {
        many.push((number, staged(store, [format!("{number}").into()]).await));
    }
    for (number, mut staged) in many {
        staged.write("!".into()).await.expect("a piece can be written");
        commit(staged, &shard(number), Condition::CreateOnly).await;
    }
    for number in 0..4 {
        assert_eq!(content(store, &shard(number)).await, format!("{number}!"));
    }
}
