use std::sync::Arc;

use super::{
    content, current, pattern, put,
    racing::{WRITERS, race, won},
    shard,
};
use crate::{Condition, Store};

/// More than any store sends in one piece.
const LARGE: usize = 17_000_000;

pub(super) async fn all(make: &impl AsyncFn() -> Arc<dyn Store>) {
    one_of_many_commits_a_large_object(make().await).await;
}

async fn one_of_many_commits_a_large_object(store: Arc<dyn Store>) {
    let large = pattern(LARGE);
    let version = put(&*store, &current(), "before").await;
    for (key, condition) in [
        (shard(0), Condition::CreateOnly),
        (current(), Condition::Replace(version)),
    ] {
        let winners = race(|number| {
            let (store, key, condition, large) = (Arc::clone(&store), key.clone(), condition.clone(), large.clone());
            async move {
                let mut staged = store.stage().await.expect("an object can be staged");
                for piece in [large, format!("{number}").into()] {
                    staged.write(piece).await.expect("a piece can be written");
                }
                won(staged.commit(&key, condition).await)
            }
        });
        assert_eq!(winners.await, 1, "exactly one of {WRITERS} commits {key}");
        assert!(content(&*store, &key).await.starts_with(&large), "{key} is whole");
    }
}
