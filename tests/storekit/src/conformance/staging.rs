use std::sync::Arc;

use futures_util::TryStreamExt as _;
use model::Key;

use super::{both, content, head, is_missing, object, pattern, stage};
use store::{Condition, Staged, Store, Version};

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    staged_pieces_are_joined_in_order(&*make().await).await;
    staged_object_is_hidden_before_commit(&*make().await).await;
    commit_without_writes_makes_an_empty_object(&*make().await).await;
    staged_objects_do_not_mix(&*make().await).await;
}

async fn commit(staged: Box<dyn Staged>, key: &Key, condition: Condition) -> Version {
    staged
        .commit(key, condition)
        .await
        .expect("the condition holds")
}

async fn staged_pieces_are_joined_in_order(store: &dyn Store) {
    let whole = pattern(700_000);
    for key in both(&whole) {
        let small = whole.slice(..10_000);
        let large = whole.slice(10_000..);
        let pieces = small
            .chunks(7)
            .chain([&[][..]])
            .chain(large.chunks(300_000));
        let staged = stage(store, pieces.map(bytes::Bytes::copy_from_slice)).await;
        let version = commit(staged, &key, Condition::CreateOnly).await;
        assert!(
            content(store, &key).await == whole,
            "the pieces of {key} in order"
        );
        let head = head(store, &key).await;
        assert_eq!((head.size, head.version), (700_000, version));
    }
}

async fn staged_object_is_hidden_before_commit(store: &dyn Store) {
    let bytes = pattern(600_000);
    let key = object(&bytes);
    drop(stage(store, [bytes.clone()]).await);
    let staged = stage(store, [bytes]).await;
    let listed: Vec<_> = store
        .list("")
        .try_collect()
        .await
        .expect("a store can be listed");
    assert!(
        listed.is_empty(),
        "what is staged or dropped is not listed: {listed:?}"
    );
    assert!(is_missing(store, &key).await);
    commit(staged, &key, Condition::Always).await;
    assert!(!is_missing(store, &key).await);
}

async fn commit_without_writes_makes_an_empty_object(store: &dyn Store) {
    for key in both(b"") {
        commit(stage(store, []).await, &key, Condition::CreateOnly).await;
        assert_eq!(content(store, &key).await, "");
    }
}

async fn staged_objects_do_not_mix(store: &dyn Store) {
    let mut many = Vec::new();
    for number in 0..4 {
        many.push((number, stage(store, [format!("{number}").into()]).await));
    }
    for (number, mut staged) in many {
        staged
            .write("!".into())
            .await
            .expect("a piece can be written");
        commit(
            staged,
            &object(format!("{number}!").as_bytes()),
            Condition::CreateOnly,
        )
        .await;
    }
    for number in 0..4 {
        let expected = format!("{number}!");
        assert_eq!(content(store, &object(expected.as_bytes())).await, expected);
    }
}
