//! Answers of hooks and a power cut: tests of other crates would pass without them.

use std::future::{pending, ready};

use futures_util::FutureExt as _;
use model::{Key, Kind, Sha256};
use store::{Condition, Store as _, StoreError};
use storekit::{Answer, MemoryStore, Moment};

fn shard(number: u8) -> Key {
    Key::Object(Kind::Package, Sha256::of(&[number]))
}

async fn put(store: &MemoryStore, key: &Key) -> Result<store::Version, StoreError> {
    store.put(key, "x".into(), Condition::CreateOnly).await
}

/// A task that waits and is dropped stands for a process that was killed there.
#[tokio::test]
async fn hook_answers_in_place_of_the_store_before_or_after_the_write() {
    let fail: fn() -> Answer = || Answer::Fail;
    let rows = [
        ("failed", fail),
        ("conflict", || Answer::Conflict),
        ("killed", || Answer::Wait(pending().boxed())),
        ("conflict", || Answer::Wait(ready(Answer::Conflict).boxed())),
    ];
    for ((expected, answer), (at, left)) in rows
        .into_iter()
        .flat_map(|row| [(Moment::Before, 0), (Moment::After, 1)].map(|at| (row, at)))
    {
        let store = MemoryStore::new();
        store.set_hook(move |_, moment| if moment == at { answer() } else { Answer::GoOn });
        let found = match put(&store, &shard(1)).now_or_never() {
            None => "killed",
            Some(Ok(_)) => "done",
            Some(Err(error)) if error.is_conflict() => "conflict",
            Some(Err(_)) => "failed",
        };
        assert_eq!((found, store.objects().len()), (expected, left), "{at:?}");
    }
}

#[tokio::test]
async fn cut_power_loses_unflushed_objects() {
    let store = MemoryStore::new();
    put(&store, &shard(1)).await.unwrap();
    store.flush().await.unwrap();
    for number in 2..5 {
        put(&store, &shard(number)).await.unwrap();
    }
    put(&store, &Key::Catalogs).await.unwrap();
    store.cut_power(|key| *key == shard(3));
    let mut expected = vec![Key::Catalogs, shard(1), shard(3)];
    expected.sort();
    assert_eq!(store.objects().into_keys().collect::<Vec<_>>(), expected);
}
