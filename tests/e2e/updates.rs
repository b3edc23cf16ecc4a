//! A series of updates: each is pushed, polled and read back.

use std::{collections::BTreeMap, sync::Arc};

use model::{Kind, ObjectDigest, Snapshot};
use publish::{Mirror, MirrorSettings, PollOptions};
use store::{FolderStore, Store, StoreExt, read_stored};
use tempfile::TempDir;
use testkit::Registry;

use crate::support::catalogs::{self, Files};

/// Returns one state of a deterministic series, in which packages change, appear and disappear.
fn step(at: usize) -> Files {
    let mut bundles: BTreeMap<usize, usize> = (0..20).map(|package| (package, 1 + package % 4)).collect();
    for step in 1..=at {
        *bundles.entry(step * 7 % 20).or_default() += 1;
        if step % 5 == 0 {
            bundles.remove(&(step % 20));
        }
        if step % 4 == 0 {
            bundles.insert(20 + step, 2);
        }
    }
    bundles
        .into_iter()
        .map(|(package, bundles)| catalogs::package(&format!("operator-{package:02}"), bundles))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_update_is_complete_and_writes_only_changed_objects() {
    let registry = Registry::builder().bearer("robot", "secret").start().await;
    let folder = TempDir::new().unwrap();
    let auth = folder.path().join("auth.json");
    // `robot:secret` in base64.
    let entry = serde_json::json!({"auths": {registry.host(): {"auth": "cm9ib3Q6c2VjcmV0"}}});
    std::fs::write(&auth, entry.to_string()).unwrap();
    let store: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("store")).unwrap());
    let images = source::SourceSettings {
        http: source::FetchSettings {
            plain_http: source::PlainHttp::Hosts(vec![registry.host().to_owned()]),
            ..source::FetchSettings::default()
        },
        auth_files: vec![auth],
        ..source::SourceSettings::default()
    };
    let images = source::Sources::new(images).unwrap();
    let mirror = Mirror::new(
        images,
        store.clone(),
        MirrorSettings::default(),
        publish::PollMetrics::default(),
    );
    let catalog = publish::Catalog::new(
        "live".parse().unwrap(),
        registry
            .reference("ns/live", "latest")
            .parse::<source::Source>()
            .unwrap(),
    );
    let mut before: BTreeMap<String, ObjectDigest> = BTreeMap::new();
    let mut documents = BTreeMap::new();
    for at in 0..=20 {
        registry.push("ns/live", "latest", &catalogs::image(&step(at)));
        let report = mirror.poll(&catalog, PollOptions::default()).await;
        assert_eq!(report.error_text(), None);
        assert_eq!(report.serial, Some(at as u64 + 1));
        let pointer = model::Key::Current(catalog.name.clone());
        let (current, _) = store.read_document::<model::Current>(&pointer).await.unwrap().unwrap();
        let snapshot: Snapshot = read_stored(&*store, &current.snapshot.digest).await.unwrap();
        let now: BTreeMap<String, ObjectDigest> = snapshot
            .packages
            .iter()
            .map(|shard| (shard.name.clone(), shard.stored))
            .collect();
        let fresh = now
            .iter()
            .filter(|(name, stored)| before.get(*name) != Some(stored))
            .count();
        assert_eq!(
            report.changes.added.len() + report.changes.changed.len(),
            fresh,
            "step {at}"
        );
        assert_eq!(report.packages_validated, fresh, "step {at}");
        // The changed shards, two encodings of the whole, the index, the snapshot and the image; documents that differ.
        let old = std::mem::replace(&mut documents, snapshot.facts);
        let other = documents
            .iter()
            .filter(|(kind, facts)| old.get(*kind) != Some(facts))
            .count();
        let expected = (fresh + other) as u64 + 4 + catalogs::IMAGE_BLOBS;
        assert_eq!(report.objects_published, expected, "step {at}");
        for gone in before.iter().filter(|(name, _)| !now.contains_key(*name)) {
            assert!(
                store.head(&gone.1.with_kind(Kind::Package).key()).await.is_ok(),
                "the shard of {} must stay",
                gone.0
            );
        }
        before = now;
    }
    let found = upkeep::verify(&*store, &catalog.name).await.unwrap();
    assert_eq!((found.findings.len(), found.snapshots), (0, 17));
}
