//! The store fails, others write at the same time, the process is killed.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use model::{Key, Kind};
use storekit::{Action, Answer, Call, MemoryStore, Moment};
use tokio::time::{Instant, sleep, timeout};

use super::world::{RecordingReceiver, cursors, down, name, notifier, one, publish, unchanged};

fn writes_cursors(call: &Call) -> bool {
    matches!(
        (&call.action, &call.key),
        (Action::Put(_), Some(Key::Notified(_)))
    )
}

/// Lets the store do this at each write of the cursors.
fn at_writes(store: &MemoryStore, answer: fn() -> Answer) {
    store.set_hook(move |call, _| {
        if writes_cursors(call) {
            answer()
        } else {
            Answer::GoOn
        }
    });
}

#[tokio::test(start_paused = true)]
async fn event_is_repeated_with_same_id_until_its_cursor_is_written() {
    let (store, receiver, first) = one();
    first.register_receivers(&[name()]).await;
    let published = publish(&store, "a1").await;
    at_writes(&store, || Answer::Fail);
    first.after(&published).await;
    // The second process is killed before the write.
    at_writes(&store, || Answer::Wait(pending().boxed()));
    let killed = timeout(Duration::from_secs(60), first.after(&published)).await;
    killed.unwrap_err();
    store.clear_hook();
    let next = notifier(&store, &[&receiver]);
    next.after(&unchanged(&store).await).await;
    next.after(&unchanged(&store).await).await;
    let events = receiver.take();
    assert_eq!(events, vec![events[0].clone(); 3]);
    assert_eq!(cursors(&store).await, ["receiver: 1"]);
}

#[tokio::test(start_paused = true)]
async fn failed_store_read_postpones_event() {
    let (store, receiver, notifier) = one();
    notifier.register_receivers(&[name()]).await;
    let published = publish(&store, "a1").await;
    let reads: [fn(&Key) -> bool; 3] = [
        |key| matches!(key, Key::Notified(_)),
        |key| matches!(key, Key::Current(_)),
        |key| matches!(key, Key::Object(Kind::Snapshot, _)),
    ];
    for fails in reads {
        store.set_hook(move |call, _| {
            let is_failing = call.key.as_ref().is_some_and(fails);
            if is_failing {
                Answer::Fail
            } else {
                Answer::GoOn
            }
        });
        notifier.after(&published).await;
        assert_eq!(receiver.take(), []);
    }
    store.clear_hook();
    notifier.after(&published).await;
    assert_eq!(receiver.received(), ["0 to 1: +a"]);
}

/// Both processes send, as neither knows of the other; the slower one must not take back what the
/// faster one has noted.
#[tokio::test(start_paused = true)]
async fn slow_process_does_not_move_cursor_back() {
    let (store, slow, first) = one();
    let fast = RecordingReceiver::new("receiver");
    let second = notifier(&store, &[&fast]);
    first.register_receivers(&[name()]).await;
    let published = publish(&store, "a1").await;
    // The first is held up with its acknowledged event in hand, while the second tells this and the
    // next publication.
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let wait = Mutex::new(Some(wait));
    store.set_hook(move |call, moment| {
        match wait.lock().unwrap().take_if(|_| writes_cursors(call)) {
            Some(wait) if moment == Moment::Before => {
                Answer::Wait(wait.map(|_| Answer::GoOn).boxed())
            }
            _ => Answer::GoOn,
        }
    });
    let others = async {
        sleep(Duration::from_millis(10)).await;
        second.after(&published).await;
        second.after(&publish(&store, "a2").await).await;
        go.send(()).unwrap();
    };
    tokio::join!(first.after(&published), others);
    assert_eq!((slow.take().len(), fast.take().len()), (1, 2));
    assert_eq!(cursors(&store).await, ["receiver: 2"]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_receivers_both_move_their_cursors() {
    let store = MemoryStore::new();
    let [a, b] = ["a", "b"].map(RecordingReceiver::new);
    let notifier = notifier(&store, &[&a, &b]);
    // Both have read the document before one of them writes it.
    at_writes(&store, || {
        Answer::Wait(
            sleep(Duration::from_millis(10))
                .map(|()| Answer::GoOn)
                .boxed(),
        )
    });
    notifier.after(&publish(&store, "p1").await).await;
    assert_eq!(cursors(&store).await, ["a: 1", "b: 1"]);
}

#[tokio::test(start_paused = true)]
async fn publication_during_delivery_is_delivered_after_it() {
    let (store, receiver, notifier) = one();
    let notifier = Arc::new(notifier);
    // Down for a few seconds: the first call waits.
    receiver.answers(|sending| if sending == 0 { Err(down()) } else { Ok(()) });
    notifier.spawn_after(&publish(&store, "a1").await);
    sleep(Duration::from_millis(10)).await;
    let second = publish(&store, "a2").await;
    timeout(Duration::from_millis(10), notifier.after(&second))
        .await
        .expect("a call does not wait for another one that is at work");
    sleep(Duration::from_secs(30)).await;
    assert_eq!(
        receiver.received(),
        ["0 to 1: +a", "0 to 1: +a", "1 to 2: ~a"]
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_receiver_delays_call_until_limit_only() {
    let store = MemoryStore::new();
    let [receiver, hanging] = ["receiver", "hanging"].map(RecordingReceiver::new);
    hanging.hangs();
    let notifier = notifier(&store, &[&hanging, &receiver]);
    let published = publish(&store, "a1").await;
    let started = Instant::now();
    notifier.after(&published).await;
    assert!(
        started.elapsed() <= Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(receiver.take().len(), 1);
    assert_eq!(cursors(&store).await, ["hanging: 0", "receiver: 1"]);
}
