//! Copies from store to store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use model::{Current, Encoding, Key, Kind, Outcome, Status, ValidationCounts};
use render::RenderLimits;
use rstest::rstest;
use store::{Store, StoreExt};
use storekit::{Action, Answer, Moment};
use sync::SyncOptions;

use crate::kit::{
    DERIVED, V1, V2, add_findings, assert_sound, copied, copier, copy, copy_one, current,
    failed_copy, mirror, name, options, publish, published, put, put_raw, republish, snapshot,
    write_pointer,
};

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn copy_is_the_original_byte_for_byte(#[values(false, true)] rebuild: bool) {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let first = copy(&from, &to, options(rebuild)).await;
    assert_eq!(
        (first.error.clone(), first.outcome),
        (None, Outcome::Published)
    );
    assert_eq!(first.rebuilt.objects, if rebuild { DERIVED } else { 0 });
    assert_eq!(published(&memory).await, published(&original).await);
    assert_eq!(
        copy(&from, &to, options(rebuild)).await.outcome,
        Outcome::Unchanged
    );

    // The segments of the published state only save work.
    let gzip = snapshot(&to)
        .await
        .all
        .gzip
        .with_kind(Kind::All(Encoding::Gzip));
    let sound = memory.objects()[&gzip.key()].clone();
    memory.corrupt(&gzip.key(), &b"damaged"[..]);
    publish(&from, &name(), V2).await;
    let update = copy(&from, &to, options(rebuild)).await;
    assert_eq!(
        (update.error.clone(), update.outcome),
        (None, Outcome::Published)
    );
    memory.corrupt(&gzip.key(), sound);
    // The pointer, the snapshot, the days, two shards, and everything that is not rebuilt.
    assert_eq!(update.moved.objects, if rebuild { 5 } else { 5 + DERIVED });
    assert_eq!(published(&memory).await, published(&original).await);
    assert_sound(&memory).await;

    let (again, onward) = mirror(&[]).await;
    copy(&to, &onward, options(rebuild)).await;
    assert_eq!(published(&again).await, published(&original).await);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn copy_has_the_findings_and_their_numbers_in_its_status(
    #[values(false, true)] rebuild: bool,
) {
    let (original, from) = mirror(&[V1]).await;
    add_findings(&from).await;
    let (memory, to) = mirror(&[]).await;
    let report = copy(&from, &to, options(rebuild)).await;
    assert_eq!(
        (report.error.clone(), report.outcome),
        (None, Outcome::Published)
    );
    assert_eq!(published(&memory).await, published(&original).await);
    assert_eq!(validated(&to).await.map(|counts| counts.errors), Some(1));
    assert_sound(&memory).await;
    // The next state has none.
    publish(&from, &name(), V2).await;
    copy(&from, &to, options(rebuild)).await;
    assert_eq!(validated(&to).await, None);
}

async fn validated(store: &Arc<dyn Store>) -> Option<ValidationCounts> {
    let status = store
        .read_document::<Status>(&Key::Status(name()))
        .await
        .unwrap();
    status.and_then(|(status, _)| status.validation)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_findings_that_are_another_document_is_refused(
    #[values(false, true)] rebuild: bool,
) {
    let (_, from) = mirror(&[V1]).await;
    let forged = put(&from, Kind::Facts, zstd::bulk::compress(b"{}", 1).unwrap()).await;
    let findings = [("findings".to_owned(), forged)];
    republish(&from, |snapshot| snapshot.facts.extend(findings)).await;
    let (_, error) = failed_copy(&from, rebuild).await;
    assert!(error.contains("facts/sha256/"), "{error}");
}

/// Acts as another catalog with the same packages that is copied at the same time and is always
/// faster.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn copy_keeps_intact_objects_that_another_writer_put_first(
    #[values(false, true)] rebuild: bool,
) {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let conflicts = Arc::new(Mutex::new(0));
    let count = Arc::clone(&conflicts);
    memory.set_hook(move |call, when| {
        let is_shared = matches!(call.key, Some(Key::Object(Kind::Package | Kind::Blob, _)));
        let is_write = matches!(call.action, Action::Put(_) | Action::Commit(_));
        if !is_shared || !is_write || when == Moment::Before {
            return Answer::GoOn;
        }
        *count.lock().unwrap() += 1;
        Answer::Conflict
    });
    original.take_log();
    let copy = copy(&from, &to, options(rebuild)).await;
    assert_eq!(
        (copy.error.clone(), copy.outcome),
        (None, Outcome::Published)
    );
    assert!(*conflicts.lock().unwrap() > 0);
    // Each attempt reads the pointer of the origin, and a conflict begins no other one.
    let (log, pointer) = (original.take_log(), Some(Key::Current(name())));
    let asked = log.iter().filter(|call| call.action == Action::Get);
    assert_eq!(asked.filter(|call| call.key == pointer).count(), 1);
    memory.clear_hook();
    assert_eq!(published(&memory).await, published(&original).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_unchanged_catalog_costs_one_read_and_one_status() {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    let copier = copier(&from, &to, options(true));
    copy_one(&copier).await;
    original.take_log();
    memory.take_log();
    copy_one(&copier).await;
    let read: Vec<_> = original
        .take_log()
        .into_iter()
        .filter_map(|call| call.key)
        .collect();
    assert_eq!(
        BTreeSet::from_iter(read),
        BTreeSet::from([Key::Current(name())])
    );
    assert!(
        memory
            .written()
            .iter()
            .all(|key| *key == Key::Status(name()))
    );
}

/// An origin before and after an update.
struct Origins {
    older: Arc<dyn Store>,
    newer: Arc<dyn Store>,
    /// The documents and objects of the newer one.
    goal: BTreeMap<Key, Bytes>,
}

/// Fails or kills the copy of the update at the operation with this number. Returns true if there
/// was such an operation.
async fn copy_with_a_fault(
    origins: &Origins,
    at: u64,
    moment: Moment,
    kill: bool,
    rebuild: bool,
) -> bool {
    let Origins { older, newer, goal } = origins;
    let (memory, to) = mirror(&[]).await;
    copy(older, &to, options(rebuild)).await;
    let before = published(&memory).await;

    let first = memory.take_log().len() as u64;
    let hit = Arc::new(Mutex::new(false));
    let killed = Arc::new(tokio::sync::Notify::new());
    let (gone, is_gone) = tokio::sync::watch::channel(false);
    let (was_hit, kill_now) = (hit.clone(), killed.clone());
    memory.set_hook(move |call, when| {
        let this = call.number == first + at;
        // An operation that fails by itself, such as a read of a missing object, has no second
        // moment.
        *was_hit.lock().unwrap() |= this;
        if !this || when != moment {
            return Answer::GoOn;
        }
        if !kill {
            return Answer::Fail;
        }
        kill_now.notify_one();
        // The threads of the killed copy must end with the test.
        let mut is_gone = is_gone.clone();
        Answer::Wait(Box::pin(async move {
            drop(is_gone.wait_for(|gone| *gone).await);
            Answer::Fail
        }))
    });
    let copying = copier(newer, &to, options(rebuild));
    tokio::select! {
        _ = copy_one(&copying) => {}
        () = killed.notified() => {}
    }
    drop(copying);
    gone.send_replace(true);
    memory.clear_hook();
    // A power cut loses what was put and not flushed.
    memory.cut_power(|_| at.is_multiple_of(2));

    assert_sound(&memory).await;
    let now = published(&memory).await;
    assert!(
        now == before || now == *goal,
        "neither old nor new after {at}"
    );
    let next = copy(newer, &to, options(rebuild)).await;
    assert_eq!(next.error.clone(), None, "the next run after {at}");
    assert_eq!(published(&memory).await, *goal);
    assert_sound(&memory).await;
    *hit.lock().unwrap()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn copy_that_stops_at_any_operation_is_finished_by_the_next(
    #[values(false, true)] kill: bool,
    #[values(false, true)] rebuild: bool,
    #[values(Moment::Before, Moment::After)] moment: Moment,
) {
    let (_, older) = mirror(&[V1]).await;
    let (memory, newer) = mirror(&[V1, V2]).await;
    let goal = published(&memory).await;
    let origins = Origins { older, newer, goal };
    let mut at = 0;
    while copy_with_a_fault(&origins, at, moment, kill, rebuild).await {
        at += 1;
    }
    assert!(at > 20, "only {at} operations were tried");
}

/// Another history, and an earlier state of this one: an edge of a CDN may serve what it had before
/// the last copy.
#[tokio::test(flavor = "multi_thread")]
async fn copy_of_other_history_or_earlier_state_needs_its_option() {
    let (_, newer) = mirror(&[V1, V2]).await;
    let (_, edge) = mirror(&[V1]).await;
    let (_, other) = mirror(&[&[("else", 1)]]).await;
    let (memory, to) = mirror(&[]).await;
    copy(&newer, &to, options(true)).await;
    for (from, rollback, diverged, outcome, serial) in [
        (&other, false, false, Outcome::Refused, 2),
        (&other, true, false, Outcome::Refused, 2),
        (&other, false, true, Outcome::Refused, 2),
        (&edge, false, false, Outcome::Unchanged, 2),
        (&edge, true, false, Outcome::Published, 1),
        (&newer, false, false, Outcome::Published, 2),
        (&other, true, true, Outcome::Published, 1),
    ] {
        let before = published(&memory).await;
        let options = SyncOptions {
            rollback,
            diverged,
            ..options(true)
        };
        let report = copy(from, &to, options).await;
        let is_refused = outcome == Outcome::Refused;
        assert_eq!(
            (report.outcome, report.error.is_some()),
            (outcome, is_refused)
        );
        assert_eq!(
            published(&memory).await == before,
            outcome != Outcome::Published
        );
        assert_eq!(current(&to, &name()).await.unwrap().serial, serial);
        assert_sound(&memory).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_catalog_beyond_content_bytes_is_refused() {
    let (_, from) = mirror(&[V1]).await;
    let pointer = current(&from, &name()).await.unwrap();
    let limit = RenderLimits::default().content_bytes;
    for (size, outcome, says) in [
        (
            limit + 1,
            Outcome::Refused,
            "exceeds the limit contentBytes",
        ),
        // Its Snapshot is read, and has another size.
        (limit, Outcome::Failed, "do not belong together"),
    ] {
        let forged = Current {
            size,
            ..pointer.clone()
        };
        write_pointer(&from, &name(), &forged).await;
        let (memory, report) = copied(&from, options(true)).await;
        let text = report.error.clone().unwrap_or_default();
        assert!(report.outcome == outcome && text.contains(says), "{text}");
        assert!(
            memory
                .objects()
                .keys()
                .all(|key| !matches!(key, Key::Current(_)))
        );
    }
}

/// A killed copy or a failing disk may leave anything under the keys of the new state.
#[tokio::test(flavor = "multi_thread")]
async fn copy_replaces_damaged_leftovers() {
    let (original, from) = mirror(&[V1]).await;
    for entry in snapshot(&from).await.objects() {
        let (memory, to) = mirror(&[]).await;
        put_raw(&to, &entry.key(), b"something else".to_vec()).await;
        let report = copy(&from, &to, options(true)).await;
        assert_eq!(report.error.clone(), None, "{}", entry.key());
        assert_eq!(report.repaired, [entry.key().to_string()]);
        assert_eq!(published(&memory).await, published(&original).await);
    }
}

/// Only the damaged object is made or fetched again.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn copy_with_recheck_replaces_damaged_objects_of_the_published_state(
    #[values(false, true)] rebuild: bool,
) {
    let (original, from) = mirror(&[V1]).await;
    let (memory, to) = mirror(&[]).await;
    copy(&from, &to, options(rebuild)).await;
    for entry in snapshot(&from).await.objects() {
        memory.corrupt(&entry.key(), &b"damaged"[..]);
        let recheck = SyncOptions {
            recheck: true,
            ..options(rebuild)
        };
        let report = copy(&from, &to, recheck).await;
        assert_eq!(
            (report.error.clone(), report.outcome),
            (None, Outcome::Unchanged)
        );
        assert_eq!(report.repaired, [entry.key().to_string()]);
        let made = rebuild && snapshot(&from).await.can_make(&entry.key());
        assert_eq!(report.rebuilt.objects, u64::from(made), "{}", entry.key());
        assert_eq!(published(&memory).await, published(&original).await);
    }
}
