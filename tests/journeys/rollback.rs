//! An earlier content is published again, and stays until the source moves.

use layout::{Key, Outcome, PREVIOUS_MAX};
use poll::{Look, PollError, RollbackError, Target, rollback};
use serde_json::Value;
use store::{
    Store,
    memory::{Action, Answer, Moment},
};
use tempfile::TempDir;

use crate::support::{
    binary::run,
    catalogs,
    site::{Site, ten},
};

/// Two publications: ten packages, then one of them with more bundles.
async fn published_twice() -> Site {
    let site = Site::start().await;
    site.push(&ten());
    site.turn().await;
    let mut files = ten();
    files[4] = catalogs::package("p4", 4);
    site.push(&files);
    site.turn().await;
    site
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_a_publication_that_polls_leave_alone_until_the_source_moves() {
    let site = published_twice().await;
    let before = site.current().await;
    let report = rollback(&site.store, &site.catalog.name, &Target::Previous, None).await;
    assert_eq!((report.outcome, report.serial), (Outcome::Published, Some(3)));
    assert_eq!(report.changes.changed, ["p4"]);
    let after = site.current().await;
    assert_eq!(after.content_hash, before.previous[0].content_hash);
    assert_eq!(after.source, before.source);
    site.is_sound().await;

    assert_eq!(site.turn().await.outcome, Outcome::Unchanged);
    assert_eq!(site.current().await, after);

    let mut files = ten();
    files[5] = catalogs::package("p5", 7);
    site.push(&files);
    assert_eq!(site.turn().await.serial, Some(4));
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_poll_takes_the_source_again() {
    let site = published_twice().await;
    let newest = site.current().await.content_hash;
    rollback(&site.store, &site.catalog.name, &Target::Previous, None).await;
    let forced = site.mirror.turn(&site.catalog, true).await;
    assert_eq!(
        (forced.outcome, forced.content_hash),
        (Outcome::Published, Some(newest))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_whole_is_not_published_again() {
    let site = published_twice().await;
    let name = &site.catalog.name;
    let before = site.current().await;
    let old = before.previous[0].content_hash;
    site.store.delete(&Key::Index(name.clone(), old)).await.unwrap();
    let refused = rollback(&site.store, name, &Target::Hash(old.to_string()), None).await;
    let Some(PollError::Rollback(RollbackError::Incomplete { count: 1, first, .. })) = &refused.error else {
        panic!("{refused:?}");
    };
    assert!(first.contains("index.json.zst, which is missing"), "{first}");

    site.store.delete(&Key::Snapshot(name.clone(), old)).await.unwrap();
    let refused = rollback(&site.store, name, &Target::Previous, None).await;
    assert!(
        matches!(refused.error, Some(PollError::Rollback(RollbackError::Gone(hash))) if hash == old),
        "{refused:?}"
    );
    assert_eq!(site.current().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_that_cannot_be_meant_are_told_apart() {
    let site = published_twice().await;
    let name = &site.catalog.name;
    let current = site.current().await.content_hash.to_string();
    let error = async |name, target: &str| {
        let report = rollback(&site.store, name, &Target::Hash(target.to_owned()), None).await;
        report.error_text()
    };
    assert_eq!(error(name, &current[..20]).await, None, "it is published already");
    assert_eq!(site.current().await.serial, 2);
    assert!(error(name, "").await.unwrap().contains("2 publications"));
    assert!(
        error(name, "nothing")
            .await
            .unwrap()
            .contains("no remembered publication")
    );
    let nobody = "nobody".parse().unwrap();
    assert!(
        error(&nobody, &current)
            .await
            .unwrap()
            .contains("has no catalog nobody")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_race_is_run_again_on_what_the_winner_wrote() {
    let site = published_twice().await;
    let current = Key::Current(site.catalog.name.clone());
    let raced = std::sync::atomic::AtomicBool::new(false);
    site.store.set_hook(move |call, moment| {
        let is_commit = matches!(call.action, Action::Put(_)) && call.key.as_ref() == Some(&current);
        if is_commit && moment == Moment::Before && !raced.swap(true, std::sync::atomic::Ordering::Relaxed) {
            return Answer::Conflict;
        }
        Answer::GoOn
    });
    let report = rollback(&site.store, &site.catalog.name, &Target::Previous, None).await;
    assert_eq!((report.outcome, report.serial), (Outcome::Published, Some(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_pulls_nothing() {
    let site = Site::start().await;
    site.push(&ten());
    let Look::Changed { digest } = site.mirror.look(&site.catalog, None).await else {
        panic!("a catalog that was never published is to be pulled");
    };
    assert_eq!(site.registry.requests().len(), 1);
    assert!(site.store.written().is_empty(), "{:?}", site.store.written());
    assert_eq!(site.turn().await.digest, Some(digest));
    let Look::Done(report) = site.mirror.look(&site.catalog, None).await else {
        panic!("nothing has changed");
    };
    assert_eq!(report.outcome, Outcome::Unchanged);
}

#[test]
fn the_command_goes_back_and_forth() {
    let store = TempDir::new().unwrap();
    let path = store.path().display().to_string();
    let report = |arguments: &[&str], code| -> Value {
        let fixed = [arguments, &["--json", "--store", &path]].concat();
        serde_json::from_str(&run(fixed).exits(code).stdout).unwrap()
    };
    let poll = |version| {
        let source = format!("demo=oci:{}:{version}", catalogs::example_layout().display());
        report(&["poll", "--catalog", &source], 10)
    };
    let first = poll("v1")[0]["contentHash"].as_str().unwrap().to_owned();
    let second = poll("v2")[0]["contentHash"].as_str().unwrap().to_owned();
    assert_eq!(report(&["rollback", "demo", &first[..8]], 0)[0]["contentHash"], first);
    assert_eq!(report(&["rollback", "demo", "--previous"], 0)[0]["contentHash"], second);
    assert_eq!(report(&["rollback", "demo", &second], 0)[0]["outcome"], "unchanged");
    assert_eq!(report(&["rollback", "demo", "0000"], 1)[0]["outcome"], "failed");
    run(["verify", "--store", &path]).exits(0);
    run(["rollback", "--store", &path, "demo"]).exits(2);
    run(["rollback", "--store", &path, "demo", &first, "--previous"]).exits(2);
}

/// `current.json` remembers so many publications; readers may hold the one before as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_falls_out_of_the_history_is_kept_from_collection() {
    let site = published_twice().await;
    let contents = [
        site.current().await.previous[0].content_hash,
        site.current().await.content_hash,
    ];
    let is_spared = |content| {
        let intent = Key::Intent(site.catalog.name.clone(), content);
        site.store.objects().contains_key(&intent)
    };
    for bundles in 5..5 + PREVIOUS_MAX {
        assert!(!contents.into_iter().any(is_spared), "{bundles}");
        let mut files = ten();
        files[4] = catalogs::package("p4", bundles);
        site.push(&files);
        site.turn().await;
    }
    assert_eq!(contents.map(is_spared), [true, false]);
    let report = rollback(&site.store, &site.catalog.name, &Target::Previous, None).await;
    assert_eq!(report.outcome, Outcome::Published);
    assert_eq!(contents.map(is_spared), [true, true]);
}
