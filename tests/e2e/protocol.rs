//! The publication protocol: writes to the store, their order, and failures between them.

use std::collections::BTreeSet;

use model::{Current, Key, Outcome};
use storekit::{Action, Call};
use testkit::{ImageBuilder, Kind, Layer, variant};

use crate::support::catalogs;
use crate::support::site::{Site, ten, ten_but};

/// Returns the kinds of documents and objects.
fn kinds(keys: impl IntoIterator<Item = Key>) -> BTreeSet<String> {
    let kind = |key| match key {
        Key::Object(kind, _) => variant(&kind),
        document => variant(&document),
    };
    keys.into_iter().map(kind).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_of_unchanged_source_sends_one_head_reads_three_documents_and_writes_none() {
    let site = Site::published().await;
    // The first of them writes that nothing is new.
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    site.registry.reset();
    site.store.take_log();
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    assert_eq!(
        site.registry.requests().len(),
        1,
        "{:?}",
        site.registry.requests()
    );
    assert_eq!(site.registry.count(Kind::Head), 1);
    // A flush makes no request to S3.
    let is_request = |call: &Call| !matches!(call.action, Action::Read | Action::Flush);
    let asked = site.store.take_log().into_iter().filter(is_request);
    let asked: Vec<_> = asked.map(|call| (call.action, call.key)).collect();
    let name = site.catalog.name.clone();
    let documents = [Key::Status(name.clone()), Key::Current(name), Key::Catalogs];
    assert_eq!(asked, documents.map(|key| (Action::Get, Some(key))));
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_of_one_changed_package_writes_only_its_objects() {
    let site = Site::published().await;
    site.store.take_log();
    site.push(&ten_but(4, 4));
    let report = site.poll().await;
    assert_eq!(report.changes.changed, ["p4"]);
    // The shard, all.json.zst, all.json.gz, the index, the findings, the days and the snapshot;
    // then the pointer and the status. The texts for search are those of before: their put is
    // refused.
    assert_eq!(report.objects_published, 7 + catalogs::IMAGE_BLOBS);
    let written: Vec<Key> = site.store.written();
    assert_eq!(
        written.len() as u64,
        10 + catalogs::IMAGE_BLOBS,
        "{written:?}"
    );
    let expected = "all blob current facts index package snapshot status";
    assert_eq!(
        kinds(written),
        expected.split(' ').map(str::to_owned).collect()
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
async fn poll_fetches_layer_without_fbc_once() {
    let site = Site::start().await;
    for (bundles, expected) in [(1, (2, 0)), (2, (1, 1))] {
        let base = Layer::new().file("usr/bin/opm", vec![7; 100_000]);
        let configs = catalogs::add(Layer::new(), "configs", &[catalogs::package("p0", bundles)]);
        let image = ImageBuilder::catalog("/configs").layer(base).layer(configs);
        site.push_image(&image.build());
        let report = site.poll().await;
        assert_eq!((report.layers_fetched, report.layers_skipped), expected);
    }
}
