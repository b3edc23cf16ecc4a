use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use model::{CatalogName, Current, Key, Outcome, Status};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions, Report};
use source::{Source, SourceSettings, Sources};
use store::{Condition, Store, StoreExt};
use storekit::MemoryStore;
use testkit::{Image, Registry};
use upkeep::{GcOptions, Retention, RollbackOptions};

use super::catalogs::{self, Files};

/// A registry, a mirror of one of its catalogs, and a store in memory.
pub(crate) struct Site {
    pub(crate) registry: Registry,
    pub(crate) store: MemoryStore,
    pub(crate) mirror: Mirror,
    pub(crate) catalog: Catalog,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let (registry, store) = (Registry::start().await, MemoryStore::new());
        let mirror = mirror(&registry, &store, MirrorSettings::default());
        let source = registry
            .reference("ns/catalog", "latest")
            .parse::<Source>()
            .unwrap();
        let name: CatalogName = "site".parse().unwrap();
        let catalog = Catalog::new(name, source);
        Self {
            registry,
            store,
            mirror,
            catalog,
        }
    }

    /// Starts a mirror that has published ten packages.
    pub(crate) async fn published() -> Self {
        Self::published_with(MirrorSettings::default()).await
    }

    pub(crate) async fn published_with(settings: MirrorSettings) -> Self {
        let mut site = Self::start().await;
        site.restart_with(settings);
        site.push(&ten());
        assert_eq!(site.poll().await.outcome, Outcome::Published);
        site
    }

    /// Replaces the mirror by one with other settings over the same store.
    pub(crate) fn restart_with(&mut self, settings: MirrorSettings) {
        self.mirror = mirror(&self.registry, &self.store, settings);
    }

    /// Returns another mirror of the same catalogs over the same store, as a second process.
    pub(crate) fn second_mirror(&self) -> Mirror {
        mirror(&self.registry, &self.store, MirrorSettings::default())
    }

    pub(crate) fn push(&self, files: &Files) {
        self.push_image(&catalogs::image(files));
    }

    pub(crate) fn push_image(&self, image: &Image) {
        self.registry.push("ns/catalog", "latest", image);
    }

    pub(crate) async fn poll(&self) -> Report {
        self.mirror
            .poll(&self.catalog, PollOptions::default())
            .await
    }

    pub(crate) async fn poll_forced(&self) -> Report {
        let options = PollOptions {
            force: true,
            ..PollOptions::default()
        };
        self.mirror.poll(&self.catalog, options).await
    }

    pub(crate) async fn current(&self) -> Current {
        self.current_of(self.catalog.name.as_str()).await
    }

    pub(crate) async fn current_of(&self, name: &str) -> Current {
        let key = Key::Current(name.parse().unwrap());
        let found = self.store.read_document(&key).await.unwrap();
        found.expect("the catalog is published").0
    }

    /// Returns the status of the catalog; `None` if it was never polled.
    pub(crate) async fn status(&self) -> Option<Status> {
        let key = Key::Status(self.catalog.name.clone());
        self.store
            .read_document(&key)
            .await
            .unwrap()
            .map(|(status, _)| status)
    }

    /// Replaces a document or an object.
    pub(crate) async fn put(&self, key: &Key, bytes: impl Into<Bytes>) {
        let written = self.store.put(key, bytes.into(), Condition::Always);
        written.await.unwrap();
    }

    pub(crate) async fn rollback(&self, options: RollbackOptions) -> Report {
        self.rollback_of(self.catalog.name.as_str(), options).await
    }

    pub(crate) async fn rollback_of(&self, name: &str, options: RollbackOptions) -> Report {
        let store: Arc<dyn Store> = Arc::new(self.store.clone());
        upkeep::rollback(&store, &name.parse().unwrap(), &options).await
    }

    pub(crate) async fn is_sound(&self) {
        self.is_sound_as(self.catalog.name.as_str()).await;
    }

    pub(crate) async fn is_sound_as(&self, name: &str) {
        let found = upkeep::verify(&self.store, &name.parse().unwrap())
            .await
            .unwrap();
        assert_eq!(found.findings, [], "{found:?}");
    }

    /// Deletes at once what no published state needs. Returns the number of objects.
    pub(crate) async fn collect(&self) -> u64 {
        let options = GcOptions {
            retention: Retention::default().with(Some(0), Some(0), Some(Duration::ZERO)),
            offline: true,
            ..GcOptions::default()
        };
        upkeep::gc(&self.store, &options)
            .await
            .unwrap()
            .deleted
            .objects
    }
}

fn mirror(registry: &Registry, store: &MemoryStore, settings: MirrorSettings) -> Mirror {
    let mut images = SourceSettings::default();
    images.http.plain_http = vec![registry.host().to_owned()];
    let images = Sources::new(images).unwrap();
    Mirror::new(
        images,
        Arc::new(store.clone()),
        settings,
        PollMetrics::default(),
    )
}

/// Returns ten packages, so that one can be removed without a refusal.
pub(crate) fn ten() -> Files {
    (0..10)
        .map(|at| catalogs::package(&format!("p{at}"), 3))
        .collect()
}

/// Returns the ten packages, of which one has another number of bundles.
pub(crate) fn ten_but(package: usize, bundles: usize) -> Files {
    let mut files = ten();
    files[package] = catalogs::package(&format!("p{package}"), bundles);
    files
}
