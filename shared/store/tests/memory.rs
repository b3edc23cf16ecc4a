//! The hooks and the log of the memory store.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::FutureExt as _;
use layout::{Key, Sha256};
use store::{
    Condition, MemoryStore, Store as _, StoreError, StoreExt as _,
    memory::{Action, Answer, Moment},
};
use tokio::sync::Notify;

fn shard(number: u8) -> Key {
    Key::Shard(Sha256::of(&[number]))
}

async fn put(store: &MemoryStore, key: &Key) -> Result<store::Version, StoreError> {
    store.put(key, "x".into(), Condition::CreateOnly).await
}

#[tokio::test]
async fn a_failure_before_does_nothing() {
    let store = MemoryStore::new();
    store.set_hook(|_, moment| {
        if moment == Moment::Before {
            Answer::Fail
        } else {
            Answer::GoOn
        }
    });
    let error = put(&store, &shard(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Failed { .. }), "{error:?}");
    assert!(store.objects().is_empty());
}

#[tokio::test]
async fn a_failure_after_is_a_lost_acknowledgement() {
    let store = MemoryStore::new();
    store.set_hook(|_, moment| {
        if moment == Moment::After {
            Answer::Fail
        } else {
            Answer::GoOn
        }
    });
    put(&store, &shard(1)).await.unwrap_err();
    assert_eq!(store.objects().len(), 1);
}

#[tokio::test]
async fn a_conflict_can_be_made_up() {
    let store = MemoryStore::new();
    store.set_hook(|call, moment| match (&call.action, moment) {
        (Action::Put(_), Moment::After) => Answer::Conflict,
        _ => Answer::GoOn,
    });
    assert!(put(&store, &shard(1)).await.unwrap_err().is_conflict());
    store.head(&shard(1)).await.unwrap();
}

#[tokio::test]
async fn a_single_operation_can_be_picked() {
    let store = MemoryStore::new();
    store.set_hook(|call, _| if call.number == 1 { Answer::Fail } else { Answer::GoOn });
    put(&store, &shard(0)).await.unwrap();
    put(&store, &shard(1)).await.unwrap_err();
    put(&store, &shard(2)).await.unwrap();
}

#[tokio::test]
async fn an_operation_waits_and_then_asks_again() {
    let store = MemoryStore::new();
    let gate = Arc::new(Notify::new());
    store.set_hook({
        let gate = Arc::clone(&gate);
        move |call, moment| {
            let gate = Arc::clone(&gate);
            match (call.number, moment) {
                (0, Moment::Before) => {
                    Answer::Wait(async move { gate.notified().map(|()| Answer::GoOn).await }.boxed())
                }
                _ => Answer::GoOn,
            }
        }
    });
    let first = tokio::spawn({
        let store = store.clone();
        async move { put(&store, &shard(1)).await }
    });
    while store.log().is_empty() {
        tokio::task::yield_now().await;
    }
    put(&store, &shard(1)).await.expect("the second overtakes the first");
    gate.notify_one();
    assert!(first.await.unwrap().unwrap_err().is_conflict());
}

/// A task that is dropped while it waits is a process that was killed there.
#[tokio::test]
async fn a_task_can_be_killed_on_either_side_of_an_operation() {
    for (at, left) in [(Moment::Before, 0), (Moment::After, 1)] {
        let store = MemoryStore::new();
        store.set_hook(move |_, moment| {
            if moment == at {
                Answer::Wait(std::future::pending().boxed())
            } else {
                Answer::GoOn
            }
        });
        assert!(put(&store, &shard(1)).now_or_never().is_none());
        assert_eq!(store.objects().len(), left, "{at:?}");
    }
}

#[tokio::test]
async fn a_body_can_break_in_the_middle() {
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
async fn the_log_tells_what_was_written() {
    let store = MemoryStore::new();
    put(&store, &shard(2)).await.unwrap();
    put(&store, &shard(2)).await.unwrap_err();
    let staged = store.stage().await.unwrap();
    staged.commit(&shard(1), Condition::Always).await.unwrap();
    store.head(&shard(3)).await.unwrap_err();
    let mut expected = vec![shard(1), shard(2)];
    expected.sort();
    assert_eq!(store.written(), expected);
    let actions: Vec<Action> = store.take_log().into_iter().map(|call| call.action).collect();
    let create = Action::Put(Condition::CreateOnly);
    assert_eq!(
        actions,
        [
            create.clone(),
            create,
            Action::Stage,
            Action::Commit(Condition::Always),
            Action::Head
        ]
    );
    assert!(store.log().is_empty());
}

#[tokio::test]
async fn a_power_cut_takes_what_was_not_flushed() {
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

#[tokio::test]
async fn the_clock_counts_or_is_given() {
    let counting = MemoryStore::new();
    put(&counting, &shard(1)).await.unwrap();
    put(&counting, &shard(2)).await.unwrap();
    let [first, second] = [1, 2].map(shard);
    let first = counting.head(&first).await.unwrap().modified;
    assert_eq!(
        counting.head(&second).await.unwrap().modified,
        first + Duration::from_secs(1)
    );

    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
    let given = MemoryStore::with_clock(move || now);
    put(&given, &shard(1)).await.unwrap();
    assert_eq!(given.head(&shard(1)).await.unwrap().modified, now);
}
