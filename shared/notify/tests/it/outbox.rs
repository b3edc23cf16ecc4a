//! Who is told what, when all goes well for the store.

use layout::{Key, Outcome};
use notify::SendError;
use store::{MemoryStore, Store};

use crate::world::{Ear, changes, down, marks, name, notifier, publish, report, snapshot, unchanged};

#[tokio::test(start_paused = true)]
async fn each_publication_is_told_once_with_what_changed() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let notifier = notifier(&store, &[&ear]);
    notifier.adopt(&[name()]).await;
    notifier.after(&publish(&store, &[("a", "1"), ("b", "1")]).await).await;
    assert_eq!(ear.told(), [(None, 1, changes(&["a", "b"], &[], &[]))]);
    notifier.after(&publish(&store, &[("b", "2"), ("c", "1")]).await).await;
    assert_eq!(ear.told(), [(Some(1), 2, changes(&["c"], &["a"], &["b"]))]);
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(ear.told(), []);
    assert_eq!(marks(&store).await, [("ear".to_owned(), Some(2))].into());
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_poll_asks_nothing_of_the_store() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let notifier = notifier(&store, &[&ear]);
    let published = publish(&store, &[("a", "1")]).await;
    notifier.after(&published).await;
    let unchanged = unchanged(&store).await;
    store.take_log();
    notifier.after(&unchanged).await;
    assert_eq!(store.take_log(), []);
}

#[tokio::test(start_paused = true)]
async fn an_existing_catalog_is_adopted_silently() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    publish(&store, &[("a", "1")]).await;
    publish(&store, &[("a", "2")]).await;
    notifier(&store, &[&ear]).after(&unchanged(&store).await).await;
    assert_eq!(ear.told(), []);
    assert_eq!(marks(&store).await, [("ear".to_owned(), Some(2))].into());
}

#[tokio::test(start_paused = true)]
async fn a_publication_of_this_turn_is_told_although_nobody_was_adopted_before() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    publish(&store, &[("a", "1")]).await;
    let published = publish(&store, &[("a", "2")]).await;
    notifier(&store, &[&ear]).after(&published).await;
    assert_eq!(ear.told(), [(Some(1), 2, changes(&[], &[], &["a"]))]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_down_from_the_start_misses_nothing() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    ear.answers(|_| Err(down()));
    notifier(&store, &[&ear])
        .after(&publish(&store, &[("a", "1")]).await)
        .await;
    assert!(ear.take().len() > 2, "it is tried several times");
    ear.answers(|_| Ok(()));
    notifier(&store, &[&ear]).after(&unchanged(&store).await).await;
    assert_eq!(ear.told(), [(None, 1, changes(&["a"], &[], &[]))]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_fails_at_first_is_told_in_the_same_call() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    ear.answers(|sending| if sending < 2 { Err(down()) } else { Ok(()) });
    notifier(&store, &[&ear])
        .after(&publish(&store, &[("a", "1")]).await)
        .await;
    let heard = ear.take();
    assert_eq!(heard.len(), 3);
    assert!(
        heard.iter().all(|event| event == &heard[0]),
        "a repeat is the same event"
    );
    assert_eq!(marks(&store).await, [("ear".to_owned(), Some(1))].into());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_down_makes_no_repeats_for_another() {
    let (store, up, dead) = (MemoryStore::new(), Ear::new("up"), Ear::new("dead"));
    dead.answers(|_| Err(down()));
    let notifier = notifier(&store, &[&up, &dead]);
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    notifier.after(&unchanged(&store).await).await;
    notifier.after(&publish(&store, &[("a", "2")]).await).await;
    assert_eq!(up.told().len(), 2);
    assert_eq!(
        marks(&store).await,
        [("dead".to_owned(), None), ("up".to_owned(), Some(2))].into()
    );
    dead.take();
    dead.answers(|_| Ok(()));
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(up.told(), []);
    assert_eq!(dead.told(), [(None, 2, changes(&["a"], &[], &[]))]);
}

#[tokio::test(start_paused = true)]
async fn several_publications_that_were_missed_are_one_event() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let first = notifier(&store, &[&ear]);
    first.after(&publish(&store, &[("a", "1"), ("b", "1")]).await).await;
    ear.take();
    publish(&store, &[("a", "2"), ("b", "1"), ("x", "1")]).await;
    publish(&store, &[("a", "2"), ("c", "1")]).await;
    let rolled_back = publish(&store, &[("a", "1"), ("c", "1")]).await;
    notifier(&store, &[&ear]).after(&rolled_back).await;
    assert_eq!(ear.told(), [(Some(1), 4, changes(&["c"], &["b"], &[]))]);
}

#[tokio::test(start_paused = true)]
async fn without_the_earlier_snapshot_the_packages_are_unknown() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let notifier = notifier(&store, &[&ear]);
    let gone = &[("a", "1")];
    notifier.after(&publish(&store, gone).await).await;
    ear.take();
    store
        .delete(&Key::Snapshot(name(), snapshot(gone).content_hash))
        .await
        .unwrap();
    notifier.after(&publish(&store, &[("a", "2")]).await).await;
    assert_eq!(ear.told(), [(Some(1), 2, None)]);
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_was_removed_and_published_anew_is_told_under_another_id() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let notifier = notifier(&store, &[&ear]);
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    let before = ear.take().remove(0);
    for key in [Key::Current(name()), Key::Notified(name())] {
        store.delete(&key).await.unwrap();
    }
    notifier.after(&publish(&store, &[("b", "1")]).await).await;
    let after = ear.take().remove(0);
    assert_eq!(after.data.published.serial, 1);
    assert_ne!(after.id, before.id);
    assert_eq!(after.data.packages, changes(&["b"], &[], &[]));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_sent_again_after_the_next_poll_and_not_before() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    ear.answers(|_| Err(SendError::Refused("401".into())));
    let notifier = notifier(&store, &[&ear]);
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    assert_eq!(ear.take().len(), 1);
    notifier
        .after(&report(Outcome::Failed, unchanged(&store).await.serial.map(|_| mark())))
        .await;
    assert_eq!(ear.take().len(), 1);
}

fn mark() -> layout::Mark {
    layout::Mark {
        serial: 1,
        content_hash: snapshot(&[("a", "1")]).content_hash,
    }
}

#[tokio::test(start_paused = true)]
async fn what_will_never_be_taken_is_given_up() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    ear.answers(|_| Err(SendError::Permanent("410".into())));
    let notifier = notifier(&store, &[&ear]);
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    notifier.after(&unchanged(&store).await).await;
    assert_eq!(ear.take().len(), 1);
    assert_eq!(marks(&store).await, [("ear".to_owned(), Some(1))].into());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_known_of_a_catalog_that_cannot_be_polled() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    notifier(&store, &[&ear]).after(&report(Outcome::Failed, None)).await;
    assert_eq!(ear.told(), []);
    assert!(store.objects().is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_receivers_the_store_is_left_alone() {
    let store = MemoryStore::new();
    let published = publish(&store, &[("a", "1")]).await;
    store.take_log();
    let notifier = notifier(&store, &[]);
    notifier.adopt(&[name()]).await;
    notifier.after(&published).await;
    assert_eq!(store.take_log(), []);
}

#[tokio::test]
async fn the_event_is_a_cloud_event() {
    let (store, ear) = (MemoryStore::new(), Ear::new("ear"));
    let notifier = notifier(&store, &[&ear]);
    notifier.after(&publish(&store, &[("a", "1")]).await).await;
    ear.take();
    notifier.after(&publish(&store, &[("a", "2")]).await).await;
    let event = ear.take().remove(0);
    let json: serde_json::Value = serde_json::from_slice(&event.to_json()).unwrap();
    let hash = snapshot(&[("a", "2")]).content_hash.to_string();
    let expected = serde_json::json!({
        "specversion": "1.0",
        "id": format!("v4_20:1:2:{}", &hash[..16]),
        "source": "/catalogs",
        "type": "io.github.catalog-mirror.catalog.published.v1",
        "subject": "v4.20",
        "time": "2026-09-21T14:13:22Z",
        "datacontenttype": "application/json",
        "data": {
            "catalog": "v4.20",
            "serial": 2,
            "contentHash": hash,
            "previous": {"serial": 1, "contentHash": snapshot(&[("a", "1")]).content_hash.to_string()},
            "packages": {"added": [], "removed": [], "changed": ["a"]},
            "publishedAt": "2026-09-21T14:13:22Z",
            "source": {"ref": "quay.io/ns/catalog:v4.20", "digest": "sha256:00"},
        },
    });
    assert_eq!(json, expected);
}
