//! A registry, a mirror of one catalog in it, and a store in memory.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use catalog_mirror_publish::{Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions, Report, SourceLimits};
use model::{Current, Key, Snapshot};
use source::{FetchSettings, Proxy, RetrySchedule, Sources};
use store::{StoreExt, read_stored};
use storekit::MemoryStore;
use testkit::{Image, Registry};

use super::row;

pub(crate) struct Site {
    registry: Registry,
    store: MemoryStore,
    mirror: Mirror,
    catalog: Catalog,
}

impl Site {
    /// With a catalog that is published, of a package named old.
    pub(crate) async fn start(images: Sources, limits: &SourceLimits) -> Self {
        let registry = Registry::start().await;
        let store = MemoryStore::new();
        let site = Self {
            mirror: mirror(images, &store, settings(limits)),
            catalog: Catalog::new(
                "hostile".parse().unwrap(),
                registry.reference("ns/cat", "v1").parse::<source::Source>().unwrap(),
            ),
            registry,
            store,
        };
        site.push(&row::image([row::layer("configs/old.yaml", "old")]));
        let report = site.poll(false).await;
        assert_eq!(report.error_text(), None);
        site
    }

    pub(crate) fn push(&self, image: &Image) {
        self.registry.push("ns/cat", "v1", image);
    }

    pub(crate) async fn poll(&self, force: bool) -> Report {
        let options = PollOptions {
            force,
            ..PollOptions::default()
        };
        self.mirror.poll(&self.catalog, options).await
    }

    /// Everything in the store but the one document that tells of failures.
    pub(crate) fn objects(&self) -> BTreeMap<Key, Vec<u8>> {
        let status = Key::Status(self.catalog.name.clone());
        let objects = self.store.objects().into_iter();
        objects
            .filter(|(key, _)| *key != status)
            .map(|(key, bytes)| (key, bytes.to_vec()))
            .collect()
    }

    /// The packages that are published, in order.
    pub(crate) async fn served(&self) -> String {
        let key = Key::Current(self.catalog.name.clone());
        let (current, _) = self.store.read_document::<Current>(&key).await.unwrap().unwrap();
        let snapshot: Snapshot = read_stored(&self.store, &current.snapshot.digest).await.unwrap();
        let names: Vec<_> = snapshot.packages.iter().map(|shard| shard.name.as_str()).collect();
        names.join(" ")
    }

    pub(crate) async fn is_sound(&self, trick: &str) {
        let found = upkeep::verify(&self.store, &self.catalog.name).await.unwrap();
        assert_eq!(found.findings, [], "{trick}");
    }
}

/// Reads images of registries on this machine.
pub(crate) fn images(limits: &SourceLimits) -> Sources {
    let settings = source::SourceSettings {
        http: FetchSettings {
            plain_http: vec!["127.0.0.1".to_owned()],
            proxy: Proxy::default(),
            retry: RetrySchedule {
                first: Duration::from_millis(1),
                longest: Duration::from_millis(2),
                ..RetrySchedule::default()
            },
            ..FetchSettings::default()
        },
        limits: limits.image.clone(),
        ..source::SourceSettings::default()
    };
    Sources::new(settings).unwrap()
}

pub(crate) fn mirror(images: Sources, store: &MemoryStore, settings: MirrorSettings) -> Mirror {
    Mirror::new(images, Arc::new(store.clone()), settings, PollMetrics::default())
}

pub(crate) fn settings(limits: &SourceLimits) -> MirrorSettings {
    let render = render::RenderSettings {
        // Nothing here is about how small the result is.
        workers: 1,
        shard_level: 1,
        zstd_level: 1,
        gzip_level: 1,
        ..render::RenderSettings::default()
    };
    MirrorSettings {
        render,
        ..MirrorSettings::with_limits(limits)
    }
}
