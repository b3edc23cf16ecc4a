//! The publication protocol: writes to the store, their order, and failures between them.

use std::collections::BTreeSet;

use model::{Current, Key, Outcome};
use publish::PollError;
use storekit::Action;
use testkit::Kind;

use crate::support::{
    catalogs,
    site::{Site, ten, ten_but},
};

fn kinds(keys: impl IntoIterator<Item = Key>) -> BTreeSet<&'static str> {
    keys.into_iter()
        .map(|key| match key {
            Key::Catalogs => "catalogs",
            Key::Current(_) => "current",
            Key::Status(_) => "status",
            Key::Notified(_) => "notified",
            Key::Gc => "gc",
            Key::Object(kind, _) => match kind {
                model::Kind::Snapshot => "snapshot",
                model::Kind::Index => "index",
                model::Kind::Facts => "facts",
                model::Kind::All(_) => "all",
                model::Kind::Package => "shard",
                model::Kind::Blob => "blob",
                model::Kind::Garbage => "garbage",
            },
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_of_unchanged_source_sends_one_head_reads_three_documents_and_writes_none() {
    let site = Site::published().await;
    // The first of them writes that nothing is new.
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    site.registry.reset();
    site.store.take_log();
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    assert_eq!(site.registry.requests().len(), 1, "{:?}", site.registry.requests());
    assert_eq!(site.registry.count(Kind::Head), 1);
    let log = site.store.take_log();
    let done: Vec<_> = log.iter().filter(|call| call.action != Action::Read).collect();
    let asked: Vec<_> = done
        .iter()
        .map(|call| (&call.action, kinds(call.key.clone())))
        .collect();
    let document = |name| BTreeSet::from([name]);
    // A flush makes no request to S3.
    let asked: Vec<_> = asked
        .into_iter()
        .filter(|(action, _)| **action != Action::Flush)
        .collect();
    let expected = [
        (&Action::Get, document("status")),
        (&Action::Get, document("current")),
        (&Action::Get, document("catalogs")),
    ];
    assert_eq!(asked, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_of_one_changed_package_writes_only_its_objects() {
    let site = Site::published().await;
    site.store.take_log();
    site.push(&ten_but(4, 4));
    let report = site.poll().await;
    assert_eq!(report.changes.changed, ["p4"]);
    // The shard, all.json.zst, all.json.gz, the index, the findings and the snapshot; then the pointer and the status.
    // The texts for search are those of before: their put is refused.
    assert_eq!(report.objects_published, 6 + catalogs::IMAGE_BLOBS);
    let written: Vec<Key> = site.store.written();
    assert_eq!(written.len() as u64, 9 + catalogs::IMAGE_BLOBS, "{written:?}");
    assert_eq!(
        kinds(written),
        BTreeSet::from([
            "current", "status", "snapshot", "index", "facts", "all", "shard", "blob"
        ])
    );
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_of_rebuilt_image_with_equal_fbc_updates_only_source_digest() {
    let site = Site::published().await;
    let before = site.current().await;
    let mut backwards = ten();
    backwards.reverse();
    site.push(&backwards);
    let report = site.poll().await;
    assert_eq!(
        (report.outcome, report.objects_published),
        (Outcome::SourceDigestUpdated, 0)
    );
    let after = site.current().await;
    assert_ne!(after.source.revision, before.source.revision);
    assert_eq!(
        Current {
            source: before.source.clone(),
            ..after
        },
        before
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_with_bad_file_publishes_nothing_and_names_it() {
    let site = Site::published().await;
    let before = site.store.objects();
    let mut files = ten();
    files.push(("p9/extra.yaml".to_owned(), b"schema: [\n".to_vec()));
    site.push(&files);
    let report = site.poll().await;
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
async fn poll_of_suspicious_result_is_refused_unless_forced() {
    let site = Site::published().await;
    site.push(&ten()[..6].to_vec());
    let report = site.poll().await;
    assert_eq!(report.outcome, Outcome::Refused);
    assert!(matches!(report.error, Some(PollError::Refused(_))));
    assert_eq!(site.current().await.serial, 1);
    let forced = site.poll_forced().await;
    assert_eq!((forced.outcome, forced.serial), (Outcome::Published, Some(2)));
    site.push(&Vec::new());
    assert_eq!(site.poll().await.outcome, Outcome::Refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_fetches_layer_without_fbc_once() {
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
    let first = site.poll().await;
    assert_eq!((first.layers_fetched, first.layers_skipped), (2, 0));
    site.push_image(&layers(2));
    let second = site.poll().await;
    assert_eq!((second.layers_fetched, second.layers_skipped), (1, 1));
}
