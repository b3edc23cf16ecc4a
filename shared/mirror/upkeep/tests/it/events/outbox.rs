//! Delivery to receivers while the store works.

use std::time::{Duration, UNIX_EPOCH};

use model::{Hold, Key, Kind, ObjectDigest, Outcome, StoredDocument};
use publish::PollError;
use store::Store;
use storekit::MemoryStore;
use upkeep::{Event, SendError};

use super::world::{
    Answer, RecordingReceiver, cursors, down, name, notifier, one, publish, report, snapshot,
    unchanged,
};

#[tokio::test(start_paused = true)]
async fn publication_is_delivered_once_with_changes() {
    let (store, receiver, first) = one();
    first.register_receivers(&[name()]).await;
    publish(&store, "a1 b1").await;
    // The process was killed before it sent anything.
    let notifier = notifier(&store, &[&receiver]);
    notifier.register_receivers(&[name()]).await;
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(receiver.received(), ["0 to 1: +a +b"]);
    notifier.after(&publish(&store, "b2 c1").await).await;
    assert_eq!(receiver.received(), ["1 to 2: +c -a ~b"]);
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(receiver.take(), []);
    assert_eq!(cursors(&store).await, ["receiver: 2"]);
}

#[tokio::test(start_paused = true)]
async fn call_without_an_event_reads_nothing_from_store() {
    let (store, receiver, sender) = one();
    sender.after(&report(Outcome::Failed, None)).await;
    assert_eq!(store.take_log(), [], "nothing was ever published");
    let published = publish(&store, "a1").await;
    sender.after(&published).await;
    assert_eq!(receiver.take().len(), 1);
    let unchanged = unchanged(&store).await;
    store.take_log();
    sender.after(&unchanged).await;
    assert_eq!(store.take_log(), [], "all is delivered");
    let without_receivers = notifier(&store, &[]);
    without_receivers.register_receivers(&[name()]).await;
    without_receivers.after(&published).await;
    assert_eq!(store.take_log(), [], "there are no receivers");
}

#[tokio::test(start_paused = true)]
async fn new_receiver_gets_the_publication_of_its_first_poll_and_no_earlier_one() {
    for (is_published_now, events) in [(false, &[][..]), (true, &["1 to 2: ~a"])] {
        let (store, receiver, notifier) = one();
        publish(&store, "a1").await;
        let published = publish(&store, "a2").await;
        let unchanged = unchanged(&store).await;
        let report = if is_published_now {
            published
        } else {
            unchanged
        };
        notifier.after(&report).await;
        assert_eq!(receiver.received(), events);
        assert_eq!(cursors(&store).await, ["receiver: 2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn receiver_that_fails_is_retried_in_same_call_when_it_asks() {
    let (store, receiver, notifier) = one();
    receiver.answers(|sending| match sending {
        0 => Err(down()),
        1 => Err(SendError::Temporary {
            retry_after: Some(Duration::from_secs(20)),
            source: "busy".into(),
        }),
        _ => Ok(()),
    });
    let started = tokio::time::Instant::now();
    notifier.after(&publish(&store, "a1").await).await;
    let took = started.elapsed().as_secs();
    assert!((21..30).contains(&took), "{took}");
    let events = receiver.take();
    assert_eq!(
        events,
        vec![events[0].clone(); 3],
        "a repeat is the same event"
    );
    assert_eq!(cursors(&store).await, ["receiver: 1"]);
}

#[tokio::test(start_paused = true)]
async fn receiver_that_is_down_causes_no_repeats_for_others_and_gets_one_event_for_all_it_missed() {
    let store = MemoryStore::new();
    let [up, dead] = ["up", "dead"].map(RecordingReceiver::new);
    let first = notifier(&store, &[&up, &dead]);
    first.after(&publish(&store, "a1 b1").await).await;
    dead.answers(|_| Err(down()));
    first.after(&publish(&store, "a2 b1 x1").await).await;
    first.after(&unchanged(&store).await).await;
    first.after(&publish(&store, "a1 c1").await).await;
    assert_eq!(
        up.received(),
        ["0 to 1: +a +b", "1 to 2: +x ~a", "2 to 3: +c -b -x ~a"]
    );
    assert_eq!(cursors(&store).await, ["dead: 1", "up: 3"]);
    dead.take();
    dead.answers(|_| Ok(()));
    notifier(&store, &[&up, &dead])
        .after(&unchanged(&store).await)
        .await;
    assert_eq!(up.take(), []);
    assert_eq!(dead.received(), ["1 to 3: +c -b"]);
}

#[tokio::test(start_paused = true)]
async fn event_without_earlier_snapshot_has_no_packages() {
    let (store, receiver, notifier) = one();
    notifier.after(&publish(&store, "a1").await).await;
    receiver.take();
    let gone = ObjectDigest::of(&snapshot("a1").to_stored().unwrap());
    store
        .delete(&gone.with_kind(Kind::Snapshot).key())
        .await
        .unwrap();
    notifier.after(&publish(&store, "a2").await).await;
    assert_eq!(receiver.received(), ["1 to 2: unknown"]);
}

#[tokio::test(start_paused = true)]
async fn republished_catalog_has_new_event_id() {
    let (store, receiver, notifier) = one();
    notifier.after(&publish(&store, "a1").await).await;
    let before = receiver.take().remove(0).id;
    for key in [Key::Current(name()), Key::Notified(name())] {
        store.delete(&key).await.unwrap();
    }
    notifier.after(&publish(&store, "b1").await).await;
    let after = receiver.take().remove(0);
    assert_eq!(
        (after.data.previous, after.data.published.serial),
        (None, 1)
    );
    assert_ne!(after.id, before);
}

#[tokio::test(start_paused = true)]
async fn refused_event_is_sent_again_after_next_poll_unless_it_is_refused_for_ever() {
    let refused: Answer = |_| Err(SendError::Refused("401".into()));
    let refused_for_ever: Answer = |_| Err(SendError::Permanent("410".into()));
    for (answer, repeats, cursor) in [
        (refused, 1, "receiver: 0"),
        (refused_for_ever, 0, "receiver: 1"),
    ] {
        let (store, receiver, notifier) = one();
        receiver.answers(answer);
        let mut report = publish(&store, "a1").await;
        notifier.after(&report).await;
        assert_eq!(receiver.take().len(), 1, "{cursor}");
        report.outcome = Outcome::Failed;
        notifier.after(&report).await;
        assert_eq!(receiver.take().len(), repeats, "{cursor}");
        assert_eq!(cursors(&store).await, [cursor]);
    }
}

#[tokio::test]
async fn event_json_is_a_cloud_event() {
    let (store, receiver, notifier) = one();
    notifier.after(&publish(&store, "a1").await).await;
    receiver.take();
    notifier.after(&publish(&store, "a2").await).await;
    let event = receiver.take().remove(0);
    let json: serde_json::Value = serde_json::from_slice(&event.to_json()).unwrap();
    let hash = snapshot("a2").content_hash.to_string();
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
            "previous": {"serial": 1, "contentHash": snapshot("a1").content_hash.to_string()},
            "packages": {"added": [], "removed": [], "changed": ["a"]},
            "publishedAt": "2026-09-21T14:14:20Z",
            "source": {"ref": "quay.io/ns/catalog:v4.20", "revision": "sha256:00"},
        },
    });
    assert_eq!(json, expected);
}

#[tokio::test(start_paused = true)]
async fn held_content_is_told_once_beside_what_is_served() {
    let (store, receiver, notifier) = one();
    notifier.after(&publish(&store, "a1").await).await;
    receiver.take();
    let mut refused = unchanged(&store).await;
    refused.outcome = Outcome::Refused;
    refused.digest = Some("sha256:1".to_owned());
    let held = |is_known| PollError::Held {
        text: "the channels change".to_owned(),
        hold: Hold {
            since: UNIX_EPOCH,
            until: Some(UNIX_EPOCH + Duration::from_secs(60)),
            released: false,
        },
        is_known,
    };
    refused.error = Some(held(false));
    notifier.after(&refused).await;
    let event = receiver.take().remove(0);
    assert_eq!(event.kind, Event::HELD_TYPE);
    assert_eq!(
        (event.data.published.serial, &event.data.packages),
        (1, &None)
    );
    let expected = r#""held":{"revision":"sha256:1","reason":"the channels change","since":"1970-01-01T00:00:00Z","until":"1970-01-01T00:01:00Z"}"#;
    let json = String::from_utf8(event.to_json().to_vec()).unwrap();
    assert!(json.contains(expected), "{json}");
    assert!(!event.id.contains('.'), "{}", event.id);
    refused.error = Some(held(true));
    notifier.after(&refused).await;
    assert_eq!(receiver.take(), []);
    assert_eq!(cursors(&store).await, ["receiver: 1"]);
}
