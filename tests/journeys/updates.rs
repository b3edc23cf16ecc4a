//! A catalog that lives: updates pushed one by one, each polled and read back.

use std::{collections::BTreeMap, sync::Arc};

use layout::{Key, Sha256};
use poll::{Mirror, Settings};
use store::{FolderStore, Store, StoreExt};
use tempfile::TempDir;
use testkit::Registry;

use crate::support::catalogs::{self, Files};

/// A deterministic series: packages grow, come and go.
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
async fn every_update_is_published_whole_and_writes_only_what_changed() {
    let registry = Registry::builder().bearer("robot", "secret").start().await;
    let folder = TempDir::new().unwrap();
    let auth = folder.path().join("auth.json");
    // "robot:secret" in base64.
    let entry = serde_json::json!({"auths": {registry.host(): {"auth": "cm9ib3Q6c2VjcmV0"}}});
    std::fs::write(&auth, entry.to_string()).unwrap();
    let store: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path().join("store")).unwrap());
    let images = image::Settings {
        plain_http: vec![registry.host().to_owned()],
        auth_files: vec![auth],
        ..image::Settings::default()
    };
    let images = image::Images::new(images).unwrap();
    let mirror = Mirror::new(images, store.clone(), Settings::default(), poll::Metrics::default());
    let catalog = poll::Catalog {
        name: "live".parse().unwrap(),
        source: registry.reference("ns/live", "latest").parse().unwrap(),
        availability: layout::Availability::Available,
        interval: None,
        policy: None,
        lookaside: None,
    };
    let mut before: BTreeMap<String, Sha256> = BTreeMap::new();
    for at in 0..=20 {
        registry.push("ns/live", "latest", &catalogs::image(&step(at)));
        let report = mirror.turn(&catalog, false).await;
        assert_eq!(report.error_text(), None);
        assert_eq!(report.serial, Some(at as u64 + 1));
        let hash = report.content_hash.unwrap();
        let key = Key::Snapshot(catalog.name.clone(), hash);
        let (snapshot, _) = store.read_document::<layout::Snapshot>(&key).await.unwrap().unwrap();
        let now: BTreeMap<String, Sha256> = snapshot
            .packages
            .iter()
            .map(|shard| (shard.name.clone(), shard.sha256))
            .collect();
        let fresh = now
            .iter()
            .filter(|(name, hash)| before.get(*name) != Some(hash))
            .count();
        assert_eq!(
            report.changes.added.len() + report.changes.changed.len(),
            fresh,
            "step {at}"
        );
        // The changed shards, two forms of the whole, the index, the snapshot and the image.
        let expected = fresh as u64 + 4 + catalogs::IMAGE_BLOBS;
        assert_eq!(report.objects_published, expected, "step {at}");
        for gone in before.iter().filter(|(name, _)| !now.contains_key(*name)) {
            assert!(
                store.head(&Key::Shard(*gone.1)).await.is_ok(),
                "the shard of {} must stay",
                gone.0
            );
        }
        before = now;
    }
    let found = keep::verify(&*store, &catalog.name).await.unwrap();
    assert_eq!((found.findings.len(), found.snapshots), (0, 17));
}
