//! The publication protocol, seen from the store: what is written, when, and what happens when something goes wrong.

use std::{collections::BTreeSet, sync::Arc};

use layout::{Current, Key, Outcome};
use poll::PollError;
use store::{
    Condition,
    memory::{Action, Answer, Moment},
};
use testkit::Kind;

use crate::support::{
    catalogs,
    site::{Site, ten},
};

fn kinds(keys: impl IntoIterator<Item = Key>) -> BTreeSet<&'static str> {
    keys.into_iter()
        .map(|key| match key {
            Key::Catalogs => "catalogs",
            Key::Current(_) => "current",
            Key::Status(_) => "status",
            Key::Layers(_) => "layers",
            Key::Notified(_) => "notified",
            Key::Intent(..) => "intent",
            Key::Sweep => "sweep",
            Key::Snapshot(..) => "snapshot",
            Key::Index(..) => "index",
            Key::All(..) => "all",
            Key::Shard(_) => "shard",
            Key::Blob(_) => "blob",
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_poll_is_one_head_and_one_read() {
    let site = Site::start().await;
    site.push(&ten());
    assert_eq!(site.turn().await.outcome, Outcome::Published);
    site.registry.reset();
    site.store.take_log();
    assert_eq!(site.turn().await.outcome, Outcome::Unchanged);
    assert_eq!(site.registry.requests().len(), 1, "{:?}", site.registry.requests());
    assert_eq!(site.registry.count(Kind::Head), 1);
    let log = site.store.take_log();
    let done: Vec<_> = log.iter().filter(|call| call.action != Action::Read).collect();
    assert_eq!(
        (&done[0].action, kinds(done[0].key.clone())),
        (&Action::Get, BTreeSet::from(["current"]))
    );
    assert_eq!(
        (&done[1].action, kinds(done[1].key.clone())),
        (&Action::Put(Condition::Always), BTreeSet::from(["status"]))
    );
    assert_eq!(done.len(), 2, "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_changed_package_writes_its_shard_the_whole_and_the_pointer() {
    let site = Site::start().await;
    site.push(&ten());
    site.turn().await;
    site.store.take_log();
    let mut files = ten();
    files[4] = catalogs::package("p4", 4);
    site.push(&files);
    let report = site.turn().await;
    assert_eq!(report.changes.changed, ["p4"]);
    // The shard, all.json.zst, all.json.gz, the index and the snapshot; then the intent, the pointer and the status.
    assert_eq!(report.objects_published, 5 + catalogs::IMAGE_BLOBS);
    let written: Vec<Key> = site.store.written();
    assert_eq!(written.len() as u64, 8 + catalogs::IMAGE_BLOBS, "{written:?}");
    assert_eq!(
        kinds(written),
        BTreeSet::from([
            "current", "status", "intent", "snapshot", "index", "all", "shard", "blob"
        ])
    );
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_fbc_in_a_rebuilt_image_changes_only_the_source_digest() {
    let site = Site::start().await;
    site.push(&ten());
    site.turn().await;
    let before = site.current().await;
    let mut backwards = ten();
    backwards.reverse();
    site.push(&backwards);
    let report = site.turn().await;
    assert_eq!((report.outcome, report.objects_published), (Outcome::Retagged, 0));
    let after = site.current().await;
    assert_ne!(after.source.digest, before.source.digest);
    assert_eq!(
        Current {
            source: before.source.clone(),
            ..after
        },
        before
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_publishes_nothing_and_says_which() {
    let site = Site::start().await;
    site.push(&ten());
    site.turn().await;
    let before = site.store.objects();
    let mut files = ten();
    files.push(("p9/extra.yaml".to_owned(), b"schema: [\n".to_vec()));
    site.push(&files);
    let report = site.turn().await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(
        report.error_text().unwrap().contains("p9/extra.yaml"),
        "{:?}",
        report.error_text()
    );
    let mut after = site.store.objects();
    assert!(after.remove(&Key::Status(site.catalog.name.clone())).is_some());
    assert!(
        after
            .iter()
            .eq(before.iter().filter(|(key, _)| !matches!(key, Key::Status(_))))
    );
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_looks_like_an_accident_is_refused_unless_forced() {
    let site = Site::start().await;
    site.push(&ten());
    site.turn().await;
    site.push(&ten()[..6].to_vec());
    let report = site.turn().await;
    assert_eq!(report.outcome, Outcome::Refused);
    assert!(matches!(report.error, Some(PollError::Suspicious(_))));
    assert_eq!(site.current().await.serial, 1);
    let forced = site.mirror.turn(&site.catalog, true).await;
    assert_eq!((forced.outcome, forced.serial), (Outcome::Published, Some(2)));
    site.push(&Vec::new());
    assert_eq!(site.turn().await.outcome, Outcome::Refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_comes_back_finds_its_objects_and_gets_a_new_serial() {
    let site = Site::start().await;
    let mut other = ten();
    other[0] = catalogs::package("p0", 9);
    for (serial, files) in [ten(), other, ten()].iter().enumerate() {
        site.push(files);
        let report = site.turn().await;
        assert_eq!(
            (report.outcome, report.serial),
            (Outcome::Published, Some(serial as u64 + 1))
        );
    }
    let current = site.current().await;
    assert_eq!(current.previous.len(), 2);
    assert_eq!(current.previous[1].content_hash, current.content_hash);
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_digest_is_never_asked_for_again() {
    let mut site = Site::start().await;
    let image = catalogs::image(&ten());
    site.push_image(&image);
    let host = site.registry.host();
    site.catalog.source = format!("{host}/ns/catalog@{}", image.digest).parse().unwrap();
    assert_eq!(site.turn().await.outcome, Outcome::Published);
    assert_eq!(site.registry.count(Kind::Head), 0);
    site.registry.reset();
    assert_eq!(site.turn().await.outcome, Outcome::Unchanged);
    assert_eq!(site.registry.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_objects_in_the_store_are_written_again() {
    let site = Site::start().await;
    site.push(&ten());
    site.turn().await;
    for key in site
        .store
        .objects()
        .into_keys()
        .filter(|key| matches!(key, Key::Shard(_)))
    {
        site.store.corrupt(&key, "damaged");
    }
    let mut files = ten();
    files[4] = catalogs::package("p4", 4);
    site.push(&files);
    assert_eq!(site.turn().await.outcome, Outcome::Published);
    site.is_sound_now().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_racing_mirrors_commit_once() {
    let site = Arc::new(Site::start().await);
    site.push(&ten());
    let turns: Vec<_> = (0..8)
        .map(|_| {
            let site = site.clone();
            tokio::spawn(async move { site.turn().await.outcome })
        })
        .collect();
    let mut published = 0;
    for turn in turns {
        match turn.await.unwrap() {
            Outcome::Published => published += 1,
            outcome => assert_eq!(outcome, Outcome::Unchanged),
        }
    }
    assert_eq!(published, 1);
    assert_eq!(site.current().await.serial, 1);
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_store_leaves_the_old_state_and_the_next_turn_finishes() {
    let site = Site::start().await;
    site.push(&ten());
    site.turn().await;
    let mut files = ten();
    files[7] = catalogs::package("p7", 5);
    site.push(&files);
    site.store
        .set_hook(|call, moment| match (&call.action, &call.key, moment) {
            (Action::Put(_), Some(Key::Snapshot(..)), Moment::Before) => Answer::Fail,
            _ => Answer::GoOn,
        });
    assert_eq!(site.turn().await.outcome, Outcome::Failed);
    assert_eq!(site.current().await.serial, 1);
    site.store.clear_hook();
    site.is_sound().await;
    assert_eq!(site.turn().await.outcome, Outcome::Published);
    assert_eq!(site.current().await.serial, 2);
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_without_fbc_is_fetched_once() {
    let site = Site::start().await;
    let layers = |value: usize| {
        let (path, bytes) = catalogs::package("p0", value);
        let base = testkit::Layer::new().file("usr/bin/opm", vec![7; 100_000]);
        let configs = testkit::Layer::new().file(&format!("configs/{path}"), bytes);
        testkit::ImageBuilder::catalog("/configs")
            .layer(base)
            .layer(configs)
            .build()
    };
    site.push_image(&layers(1));
    let first = site.turn().await;
    assert_eq!((first.layers_fetched, first.layers_skipped), (2, 0));
    site.push_image(&layers(2));
    let second = site.turn().await;
    assert_eq!((second.layers_fetched, second.layers_skipped), (1, 1));
}
