//! The store fails, others write at the same time, the process is killed.

use std::{future::pending, sync::Arc, time::Duration};

use catalog_mirror_notify::{Event, Notifier, NotifierSettings, Receiver, SendError};
use futures_util::FutureExt;
use model::{Key, Kind};
use storekit::{Action, Answer, Call, MemoryStore, Moment};
use tokio::time::timeout;

use super::world::{RecordingReceiver, changes, cursors, name, notifier, one, publish, unchanged};

fn writes_mark(call: &Call) -> bool {
    matches!(call.action, Action::Put(_)) && matches!(call.key, Some(Key::Notified(_)))
}

#[tokio::test(start_paused = true)]
async fn event_is_sent_by_next_process_after_kill_before_sending() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    notifier(&store, &[&receiver]).register_receivers(&[name()]).await;
    publish(&store, &[("a", "1")]).await;
    let next = notifier(&store, &[&receiver]);
    next.register_receivers(&[name()]).await;
    next.after(&unchanged(&store).await).await;
    assert_eq!(receiver.received(), [(None, 1, changes(&["a"], &[], &[]))]);
}

#[tokio::test(start_paused = true)]
async fn event_is_repeated_with_same_id_after_kill_before_cursor() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    let first = notifier(&store, &[&receiver]);
    first.register_receivers(&[name()]).await;
    let published = publish(&store, &[("a", "1")]).await;
    store.set_hook(|call, moment| match moment {
        Moment::Before if writes_mark(call) => Answer::Wait(pending().boxed()),
        _ => Answer::GoOn,
    });
    timeout(Duration::from_secs(60), first.after(&published))
        .await
        .unwrap_err();
    store.clear_hook();
    notifier(&store, &[&receiver]).after(&unchanged(&store).await).await;
    let events = receiver.take();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].id, events[1].id);
    assert_eq!(cursors(&store).await, [("receiver".to_owned(), Some(1))].into());
}

#[tokio::test(start_paused = true)]
async fn failed_cursor_write_causes_a_repeat() {
    let (store, receiver, notifier) = one();
    notifier.register_receivers(&[name()]).await;
    let published = publish(&store, &[("a", "1")]).await;
    store.set_hook(|call, _| if writes_mark(call) { Answer::Fail } else { Answer::GoOn });
    notifier.after(&published).await;
    store.clear_hook();
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(receiver.take().len(), 2);
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(receiver.take().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_store_read_postpones_event() {
    let (store, receiver, notifier) = one();
    notifier.register_receivers(&[name()]).await;
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
        Some(Key::Object(Kind::Snapshot, _)) => Answer::Fail,
        _ => Answer::GoOn,
    });
    notifier.after(&published).await;
    assert_eq!(receiver.received(), []);
    store.clear_hook();
    notifier.after(&published).await;
    assert_eq!(receiver.received(), [(None, 1, changes(&["a"], &[], &[]))]);
}

/// Both processes send, as neither knows of the other; the slower one must not take back what the faster one has noted.
#[tokio::test(start_paused = true)]
async fn slow_process_does_not_move_cursor_back() {
    let (store, fast, slow) = (
        MemoryStore::new(),
        RecordingReceiver::new("receiver"),
        RecordingReceiver::new("receiver"),
    );
    let (first, second) = (notifier(&store, &[&slow]), notifier(&store, &[&fast]));
    first.register_receivers(&[name()]).await;
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
    assert_eq!(slow.received().len(), 1);
    assert_eq!(fast.received().len(), 2);
    assert_eq!(cursors(&store).await, [("receiver".to_owned(), Some(2))].into());
}

#[tokio::test(start_paused = true)]
async fn concurrent_receivers_both_move_their_cursors() {
    let (store, a, b) = (
        MemoryStore::new(),
        RecordingReceiver::new("a"),
        RecordingReceiver::new("b"),
    );
    let notifier = notifier(&store, &[&a, &b]);
    notifier.after(&publish(&store, &[("p", "1")]).await).await;
    let expected = [("a".to_owned(), Some(1)), ("b".to_owned(), Some(1))].into();
    assert_eq!(cursors(&store).await, expected);
}

#[tokio::test(start_paused = true)]
async fn publication_during_delivery_is_delivered_after_it() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    let notifier = Arc::new(notifier(&store, &[&receiver]));
    // Down for a few seconds: the first call waits.
    receiver.answers(|sending| {
        if sending == 0 {
            Err(super::world::down())
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
    let received: Vec<_> = receiver
        .received()
        .into_iter()
        .map(|(from, to, _)| (from, to))
        .collect();
    assert_eq!(received, [(None, 1), (None, 1), (Some(1), 2)]);
}

#[tokio::test(start_paused = true)]
async fn hanging_receiver_delays_call_until_limit_only() {
    #[derive(Debug)]
    struct Hanging;
    #[async_trait::async_trait]
    impl Receiver for Hanging {
        fn name(&self) -> &str {
            "hanging"
        }
        async fn send(&self, _: &Event) -> Result<(), SendError> {
            pending().await
        }
    }
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    let receivers: Vec<Box<dyn Receiver>> = vec![Box::new(Hanging), Box::new(receiver.clone())];
    let notifier = Notifier::new(Arc::new(store.clone()), receivers, NotifierSettings::default());
    let published = publish(&store, &[("a", "1")]).await;
    let started = tokio::time::Instant::now();
    notifier.after(&published).await;
    assert!(started.elapsed() <= Duration::from_secs(30), "{:?}", started.elapsed());
    assert_eq!(receiver.received().len(), 1);
    assert_eq!(cursors(&store).await["receiver"], Some(1));
}
