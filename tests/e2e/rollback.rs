//! Rollbacks: an earlier state is published again and stays until the source changes.

use std::sync::atomic::{AtomicBool, Ordering};

use model::{Key, Kind, Outcome};
use publish::UpdateCheck;
use storekit::{Action, Answer, Moment};
use upkeep::RollbackOptions;

use crate::support::site::{Site, ten, ten_but};

fn to(target: &str) -> RollbackOptions {
    RollbackOptions {
        target: Some(target.to_owned()),
        ..RollbackOptions::default()
    }
}

/// Publishes ten packages, and then one of them with more bundles.
async fn published_twice() -> Site {
    let site = Site::published().await;
    site.push(&ten_but(4, 4));
    site.poll().await;
    site
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_forced_after_rollback_publishes_source() {
    let site = published_twice().await;
    let newest = site.current().await.content_hash;
    site.rollback(RollbackOptions::default()).await;
    let forced = site.poll_forced().await;
    assert_eq!(
        (forced.outcome, forced.content_hash),
        (Outcome::Published, Some(newest))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_to_incomplete_state_is_refused() {
    let site = published_twice().await;
    let before = site.current().await;
    let old = before.previous[0].content_hash;
    let is_refused = async |options: RollbackOptions, reason: String| {
        let error = site.rollback(options).await.error_text();
        assert_eq!(error, Some(format!("cannot roll back: {reason}")));
    };
    let snapshot = before.previous[0].snapshot;
    let stored: model::Snapshot = store::read_stored(&site.store, &snapshot.digest)
        .await
        .unwrap();
    let index = stored.index.with_kind(Kind::Index).key();
    site.store.lose(&index);
    let reason = format!("1 objects of {old} cannot be served, such as {index}, which is missing");
    is_refused(to(&old.to_string()), reason).await;

    site.store.lose(&snapshot.key());
    let reason = format!("the content {old} is not stored any more");
    is_refused(RollbackOptions::default(), reason).await;
    assert_eq!(site.current().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_to_unknown_or_ambiguous_target_names_the_problem() {
    let site = published_twice().await;
    let current = site.current().await.content_hash.to_string();
    // It is published already.
    assert_eq!(site.rollback(to(&current[..20])).await.error_text(), None);
    assert_eq!(site.current().await.serial, 2);
    for (name, target, said) in [
        ("site", "", "2 publications"),
        ("site", "nothing", "no remembered publication"),
        ("nobody", &current, "has no catalog nobody"),
    ] {
        let error = site
            .rollback_of(name, to(target))
            .await
            .error_text()
            .unwrap();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_after_lost_race_is_retried() {
    let site = published_twice().await;
    let current = Key::Current(site.catalog.name.clone());
    let raced = AtomicBool::new(false);
    site.store.set_hook(move |call, moment| {
        let is_commit =
            matches!(call.action, Action::Put(_)) && call.key.as_ref() == Some(&current);
        if is_commit && moment == Moment::Before && !raced.swap(true, Ordering::Relaxed) {
            return Answer::Conflict;
        }
        Answer::GoOn
    });
    let report = site.rollback(RollbackOptions::default()).await;
    assert_eq!(
        (report.outcome, report.serial),
        (Outcome::Published, Some(3))
    );
    assert_eq!(report.changes.changed, ["p4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn update_check_pulls_nothing() {
    let site = Site::start().await;
    site.push(&ten());
    let UpdateCheck::Available(digest) = site.mirror.check_for_update(&site.catalog, None).await
    else {
        panic!("a catalog that was never published is to be pulled");
    };
    assert_eq!(site.registry.requests().len(), 1);
    assert!(
        site.store.written().is_empty(),
        "{:?}",
        site.store.written()
    );
    assert_eq!(site.poll().await.digest, Some(digest));
    let UpdateCheck::Done(report) = site.mirror.check_for_update(&site.catalog, None).await else {
        panic!("nothing has changed");
    };
    assert_eq!(report.outcome, Outcome::Unchanged);
}
