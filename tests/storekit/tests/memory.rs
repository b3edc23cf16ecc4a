//! The hooks and the log of the memory store.

use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use catalog_mirror_storekit::{Action, Answer, MemoryStore, Moment};
use futures_util::FutureExt as _;
use model::{Key, Kind, Sha256};
use store::{Condition, ReadStore as _, Store as _, StoreError, StoreExt as _};

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
async fn stat_has_the_time_of_the_clock() {
    let seconds = Arc::new(AtomicU64::new(100));
    let clock = Arc::clone(&seconds);
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let store = MemoryStore::with_clock(move || at(clock.load(Ordering::Relaxed)));
    put(&store, &shard(1)).await.unwrap();
    seconds.store(160, Ordering::Relaxed);
    let stat = store.stat(&shard(1)).await.unwrap();
    assert_eq!((stat.date, stat.age()), (at(160), Some(Duration::from_secs(60))));
    assert_eq!(store.head(&shard(1)).await.unwrap().unwrap().modified, at(100));
    seconds.store(40, Ordering::Relaxed);
    let stat = store.stat(&shard(1)).await.unwrap();
    assert_eq!(stat.age(), Some(Duration::ZERO), "an object from the future has no age");
}

#[tokio::test]
async fn hook_fail_in_read_breaks_the_body() {
    let store = MemoryStore::new();
    store
        .put(&shard(1), vec![7; 100_000].into(), Condition::Always)
        .await
        .unwrap();
    store.take_log();
    store.set_hook(|call, _| match call.action {
        Action::Read if call.number > 3 => Answer::Fail,
        _ => Answer::GoOn,
    });
    store.read_all(&shard(1), u64::MAX).await.unwrap_err();
    assert_eq!(store.count(|action| *action == Action::Read), 3);
    store.clear_hook();
    store.read_all(&shard(1), u64::MAX).await.unwrap();
}

#[tokio::test]
async fn written_lists_the_keys_of_all_writes() {
    let store = MemoryStore::new();
    put(&store, &shard(2)).await.unwrap();
    put(&store, &shard(2)).await.unwrap_err();
    let staged = store.stage().await.unwrap();
    staged.commit(&shard(1), Condition::Always).await.unwrap();
    assert!(store.head(&shard(3)).await.unwrap().is_none());
    let mut expected = vec![shard(1), shard(2)];
    expected.sort();
    assert_eq!(store.written(), expected);
    let actions: Vec<Action> = store.take_log().into_iter().map(|call| call.action).collect();
    let create = Action::Put(Condition::CreateOnly);
    let commit = Action::Commit(Condition::Always);
    assert_eq!(actions, [create.clone(), create, Action::Stage, commit, Action::Head]);
    assert!(store.log().is_empty());
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
