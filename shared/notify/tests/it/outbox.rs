//! Delivery to receivers while the store works.

use std::time::Duration;

use catalog_mirror_notify::SendError;
use model::{Key, Kind, ObjectDigest, Outcome, StoredDocument};
use store::Store;
use storekit::MemoryStore;

use super::world::{
    RecordingReceiver, changes, cursors, down, name, notifier, one, publish, report, snapshot, unchanged,
};

#[tokio::test(start_paused = true)]
async fn publication_is_delivered_once_with_changes() {
    let (store, receiver, notifier) = one();
    notifier.register_receivers(&[name()]).await;
    notifier.after(&publish(&store, &[("a", "1"), ("b", "1")]).await).await;
    assert_eq!(receiver.received(), [(None, 1, changes(&["a", "b"], &[], &[]))]);
    notifier.after(&publish(&store, &[("b", "2"), ("c", "1")]).await).await;
    assert_eq!(receiver.received(), [(Some(1), 2, changes(&["c"], &["a"], &["b"]))]);
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(receiver.received(), []);
    assert_eq!(cursors(&store).await, [("receiver".to_owned(), Some(2))].into());
}

#[tokio::test(start_paused = true)]
async fn unchanged_poll_reads_nothing_from_store() {
    let (store, _receiver, notifier) = one();
    let published = publish(&store, &[("a", "1")]).await;
    notifier.after(&published).await;
    let unchanged = unchanged(&store).await;
    store.take_log();
    notifier.after(&unchanged).await;
    assert_eq!(store.take_log(), []);
}

#[tokio::test(start_paused = true)]
async fn existing_catalog_sends_no_event_to_new_receiver() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    publish(&store, &[("a", "1")]).await;
    publish(&store, &[("a", "2")]).await;
    notifier(&store, &[&receiver]).after(&unchanged(&store).await).await;
    assert_eq!(receiver.received(), []);
    assert_eq!(cursors(&store).await, [("receiver".to_owned(), Some(2))].into());
}

#[tokio::test(start_paused = true)]
async fn publication_is_delivered_without_earlier_cursor() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    publish(&store, &[("a", "1")]).await;
    let published = publish(&store, &[("a", "2")]).await;
    notifier(&store, &[&receiver]).after(&published).await;
    assert_eq!(receiver.received(), [(Some(1), 2, changes(&[], &[], &["a"]))]);
}

#[tokio::test(start_paused = true)]
async fn receiver_down_from_start_misses_nothing() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    receiver.answers(|_| Err(down()));
    notifier(&store, &[&receiver])
        .after(&publish(&store, &[("a", "1")]).await)
        .await;
    assert!(receiver.take().len() > 2, "it is tried several times");
    receiver.answers(|_| Ok(()));
    notifier(&store, &[&receiver]).after(&unchanged(&store).await).await;
    assert_eq!(receiver.received(), [(None, 1, changes(&["a"], &[], &[]))]);
}

#[tokio::test(start_paused = true)]
async fn receiver_that_fails_is_retried_in_same_call_when_it_asks() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    receiver.answers(|sending| match sending {
        0 => Err(down()),
        1 => Err(SendError::Temporary {
            retry_after: Some(Duration::from_secs(20)),
            source: "busy".into(),
        }),
        _ => Ok(()),
    });
    let started = tokio::time::Instant::now();
    notifier(&store, &[&receiver])
        .after(&publish(&store, &[("a", "1")]).await)
        .await;
    assert!(
        (21..30).contains(&started.elapsed().as_secs()),
        "{:?}",
        started.elapsed()
    );
    let events = receiver.take();
    assert_eq!(events.len(), 3);
    assert!(
        events.iter().all(|event| event == &events[0]),
        "a repeat is the same event"
    );
    assert_eq!(cursors(&store).await, [("receiver".to_owned(), Some(1))].into());
}

#[tokio::test(start_paused = true)]
async fn receiver_that_is_down_causes_no_repeats_for_others() {
    let (store, up, dead) = (
        MemoryStore::new(),
        RecordingReceiver::new("up"),
        RecordingReceiver::new("dead"),
    );
    dead.answers(|_| Err(down()));
    let notifier = notifier(&store, &[&up, &dead]);
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    notifier.after(&unchanged(&store).await).await;
    notifier.after(&publish(&store, &[("a", "2")]).await).await;
    assert_eq!(up.received().len(), 2);
    assert_eq!(
        cursors(&store).await,
        [("dead".to_owned(), None), ("up".to_owned(), Some(2))].into()
    );
    dead.take();
    dead.answers(|_| Ok(()));
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(up.received(), []);
    assert_eq!(dead.received(), [(None, 2, changes(&["a"], &[], &[]))]);
}

#[tokio::test(start_paused = true)]
async fn missed_publications_become_one_event() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    let first = notifier(&store, &[&receiver]);
    first.after(&publish(&store, &[("a", "1"), ("b", "1")]).await).await;
    receiver.take();
    publish(&store, &[("a", "2"), ("b", "1"), ("x", "1")]).await;
    publish(&store, &[("a", "2"), ("c", "1")]).await;
    let rolled_back = publish(&store, &[("a", "1"), ("c", "1")]).await;
    notifier(&store, &[&receiver]).after(&rolled_back).await;
    assert_eq!(receiver.received(), [(Some(1), 4, changes(&["c"], &["b"], &[]))]);
}

#[tokio::test(start_paused = true)]
async fn event_without_earlier_snapshot_has_no_packages() {
    let (store, receiver, notifier) = one();
    let gone = &[("a", "1")];
    notifier.after(&publish(&store, gone).await).await;
    receiver.take();
    store
        .delete(
            &ObjectDigest::of(&snapshot(gone).to_stored().unwrap())
                .with_kind(Kind::Snapshot)
                .key(),
        )
        .await
        .unwrap();
    notifier.after(&publish(&store, &[("a", "2")]).await).await;
    assert_eq!(receiver.received(), [(Some(1), 2, None)]);
}

#[tokio::test(start_paused = true)]
async fn republished_catalog_has_new_event_id() {
    let (store, receiver, notifier) = one();
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    let before = receiver.take().remove(0);
    for key in [Key::Current(name()), Key::Notified(name())] {
        store.delete(&key).await.unwrap();
    }
    notifier.after(&publish(&store, &[("b", "1")]).await).await;
    let after = receiver.take().remove(0);
    assert_eq!(after.data.published.serial, 1);
    assert_ne!(after.id, before.id);
    assert_eq!(after.data.packages, changes(&["b"], &[], &[]));
}

#[tokio::test(start_paused = true)]
async fn refused_event_is_sent_again_after_next_poll() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    receiver.answers(|_| Err(SendError::Refused("401".into())));
    let notifier = notifier(&store, &[&receiver]);
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    assert_eq!(receiver.take().len(), 1);
    notifier
        .after(&report(
            Outcome::Failed,
            unchanged(&store).await.serial.map(|_| cursor()),
        ))
        .await;
    assert_eq!(receiver.take().len(), 1);
}

fn cursor() -> model::PublicationId {
    model::PublicationId {
        serial: 1,
        content_hash: snapshot(&[("a", "1")]).content_hash,
    }
}

#[tokio::test(start_paused = true)]
async fn permanently_refused_event_is_dropped() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    receiver.answers(|_| Err(SendError::Permanent("410".into())));
    let notifier = notifier(&store, &[&receiver]);
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(receiver.take().len(), 1);
    assert_eq!(cursors(&store).await, [("receiver".to_owned(), Some(1))].into());
}

#[tokio::test(start_paused = true)]
async fn failed_poll_without_publication_sends_nothing() {
    let (store, receiver) = (MemoryStore::new(), RecordingReceiver::new("receiver"));
    notifier(&store, &[&receiver])
        .after(&report(Outcome::Failed, None))
        .await;
    assert_eq!(receiver.received(), []);
    assert!(store.objects().is_empty());
}

#[tokio::test(start_paused = true)]
async fn notifier_without_receivers_reads_nothing() {
    let store = MemoryStore::new();
    let published = publish(&store, &[("a", "1")]).await;
    store.take_log();
    let notifier = notifier(&store, &[]);
    notifier.register_receivers(&[name()]).await;
    notifier.after(&published).await;
    assert_eq!(store.take_log(), []);
}

#[tokio::test]
async fn event_json_is_a_cloud_event() {
    let (store, receiver, notifier) = one();
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    receiver.take();
    notifier.after(&publish(&store, &[("a", "2")]).await).await;
    let event = receiver.take().remove(0);
    let json: serde_json::Value = serde_json::from_slice(&event.to_json()).unwrap();
    let hash = snapshot(&[("a", "2")]).content_hash.to_string();
    let expected = serde_json::json!({
        "specversion": "1.0",
        "id": format!("v4_20:1:2:{}", &hash[..16]),
        "source": "/catalogs",
        "type": "io.github.catalog-mirror.catalog.published.v1",
        "subject": "v4.20",
        "time": "2026-09-21T14:14:20Z",
        "datacontenttype": "application/json",
        "data": {
            "catalog": "v4.20",
            "serial": 2,
            "contentHash": hash,
            "previous": {"serial": 1, "contentHash": snapshot(&[("a", "1")]).content_hash.to_string()},
            "packages": {"added": [], "removed": [], "changed": ["a"]},
            "publishedAt": "2026-09-21T14:14:20Z",
            "source": {"ref": "quay.io/ns/catalog:v4.20", "revision": "sha256:00"},
        },
    });
    assert_eq!(json, expected);
}
