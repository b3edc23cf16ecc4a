//! The store fails, others write at the same time, the process is killed.

use std::{future::pending, sync::Arc, time::Duration};

use futures_util::FutureExt;
use layout::Key;
use store::{
    MemoryStore,
    memory::{Action, Answer, Call, Moment},
};
use tokio::time::timeout;

use crate::world::{Ear, changes, marks, name, notifier, publish, unchanged};

fn writes_mark(call: &Call) -> bool {
    matches!(call.action, Action::Put(_)) && matches!(call.key, Some(Key::Notified(_)))
}

#[tokio::test(start_paused = true)]
async fn killed_between_commit_and_sending_it_is_told_by_the_next_process() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    notifier(&store, &[&ear]).adopt(&[name()]).await;
    publish(&store, &[("a", "1")]).await;
    let next = notifier(&store, &[&ear]);
    next.adopt(&[name()]).await;
    next.after(&unchanged(&store).await).await;
    assert_eq!(ear.told(), [(None, 1, changes(&["a"], &[], &[]))]);
}

#[tokio::test(start_paused = true)]
async fn killed_between_sending_and_the_mark_it_is_told_again_under_the_same_id() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let first = notifier(&store, &[&ear]);
    first.adopt(&[name()]).await;
    let published = publish(&store, &[("a", "1")]).await;
    store.set_hook(|call, moment| match moment {
        Moment::Before if writes_mark(call) => Answer::Wait(pending().boxed()),
        _ => Answer::GoOn,
    });
    timeout(Duration::from_secs(60), first.after(&published))
        .await
        .unwrap_err();
    store.clear_hook();
    notifier(&store, &[&ear]).after(&unchanged(&store).await).await;
    let heard = ear.take();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].id, heard[1].id);
    assert_eq!(marks(&store).await, [("ear".to_owned(), Some(1))].into());
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_cannot_be_written_means_a_repeat_and_nothing_worse() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let notifier = notifier(&store, &[&ear]);
    notifier.adopt(&[name()]).await;
    let published = publish(&store, &[("a", "1")]).await;
    store.set_hook(|call, _| if writes_mark(call) { Answer::Fail } else { Answer::GoOn });
    notifier.after(&published).await;
    store.clear_hook();
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(ear.take().len(), 2);
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(ear.take().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_read_postpones_the_event() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let notifier = notifier(&store, &[&ear]);
    notifier.adopt(&[name()]).await;
    let published = publish(&store, &[("a", "1")]).await;
    for failing in [Key::Notified(name()), Key::Current(name())] {
        store.set_hook(move |call, _| {
            if call.key.as_ref() == Some(&failing) {
                Answer::Fail
            } else {
                Answer::GoOn
            }
        });
        notifier.after(&published).await;
    }
    store.set_hook(|call, _| match call.key {
        Some(Key::Snapshot(..)) => Answer::Fail,
        _ => Answer::GoOn,
    });
    notifier.after(&published).await;
    assert_eq!(ear.told(), []);
    store.clear_hook();
    notifier.after(&published).await;
    assert_eq!(ear.told(), [(None, 1, changes(&["a"], &[], &[]))]);
}

/// Both processes send, as neither knows of the other; the slower one must not take back what the faster one has noted.
#[tokio::test(start_paused = true)]
async fn a_slow_process_does_not_take_back_the_mark_of_a_fast_one() {
    let (store, fast, slow) = (MemoryStore::new(), Ear::new("ear"), Ear::new("ear"));
    let (first, second) = (notifier(&store, &[&slow]), notifier(&store, &[&fast]));
    first.adopt(&[name()]).await;
    let published = publish(&store, &[("a", "1")]).await;
    // The first is held up with its acknowledged event in hand, while the second tells this and the next publication.
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let wait = std::sync::Mutex::new(Some(wait));
    store.set_hook(
        move |call, moment| match wait.lock().unwrap().take_if(|_| writes_mark(call)) {
            Some(wait) if moment == Moment::Before => Answer::Wait(wait.map(|_| Answer::GoOn).boxed()),
            _ => Answer::GoOn,
        },
    );
    let others = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        second.after(&published).await;
        second.after(&publish(&store, &[("a", "2")]).await).await;
        go.send(()).unwrap();
    };
    tokio::join!(first.after(&published), others);
    assert_eq!(slow.told().len(), 1);
    assert_eq!(fast.told().len(), 2);
    assert_eq!(marks(&store).await, [("ear".to_owned(), Some(2))].into());
}

#[tokio::test(start_paused = true)]
async fn two_receivers_that_finish_together_both_get_their_marks() {
    let (store, a, b) = (MemoryStore::new(), Ear::new("a"), Ear::new("b"));
    let notifier = notifier(&store, &[&a, &b]);
    notifier.after(&publish(&store, &[("p", "1")]).await).await;
    let expected = [("a".to_owned(), Some(1)), ("b".to_owned(), Some(1))].into();
    assert_eq!(marks(&store).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_publication_during_a_delivery_is_told_after_it() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let notifier = Arc::new(notifier(&store, &[&ear]));
    // Down for a few seconds: the first call waits.
    ear.answers(|sending| {
        if sending == 0 {
            Err(crate::world::down())
        } else {
            Ok(())
        }
    });
    notifier.spawn_after(&publish(&store, &[("a", "1")]).await);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let second = publish(&store, &[("a", "2")]).await;
    timeout(Duration::from_millis(10), notifier.after(&second))
        .await
        .expect("a call does not wait for another one that is at work");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let told: Vec<_> = ear.told().into_iter().map(|(from, to, _)| (from, to)).collect();
    assert_eq!(told, [(None, 1), (None, 1), (Some(1), 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_keeps_nobody_waiting_longer_than_the_limit() {
    #[derive(Debug)]
    struct Hanging;
    #[async_trait::async_trait]
    impl notify::Receiver for Hanging {
        fn name(&self) -> &str {
            "hanging"
        }
        async fn send(&self, _: &notify::Event) -> Result<(), notify::SendError> {
            pending().await
        }
    }
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let receivers: Vec<Box<dyn notify::Receiver>> = vec![Box::new(Hanging), Box::new(ear.clone())];
    let notifier = notify::Notifier::new(Arc::new(store.clone()), receivers, notify::Settings::default());
    let published = publish(&store, &[("a", "1")]).await;
    let started = tokio::time::Instant::now();
    notifier.after(&published).await;
    assert!(started.elapsed() <= Duration::from_secs(30), "{:?}", started.elapsed());
    assert_eq!(ear.told().len(), 1);
    assert_eq!(marks(&store).await["ear"], Some(1));
}
