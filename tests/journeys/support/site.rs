use std::sync::Arc;

use image::{Images, Settings as ImageSettings};
use layout::{Availability, CatalogName, Current, Key, Snapshot};
use poll::{Catalog, Metrics, Mirror, Report, Settings};
use store::{MemoryStore, Store, StoreExt};
use testkit::{Image, Registry};

use super::catalogs::{self, Files};

/// A registry, a mirror of one catalog in it, and a store in memory.
pub(crate) struct Site {
    pub(crate) registry: Registry,
    pub(crate) store: MemoryStore,
    pub(crate) mirror: Mirror,
    pub(crate) catalog: Catalog,
}

impl Site {
    pub(crate) async fn start() -> Self {
        Self::start_on(MemoryStore::new()).await
    }

    pub(crate) async fn start_on(store: MemoryStore) -> Self {
        Self::start_as(store, Settings::default()).await
    }

    pub(crate) async fn start_with(settings: Settings) -> Self {
        Self::start_as(MemoryStore::new(), settings).await
    }

    async fn start_as(store: MemoryStore, settings: Settings) -> Self {
        let registry = Registry::builder().start().await;
        let mirror = mirror(&registry, &store, settings);
        let source = registry.reference("ns/catalog", "latest").parse().unwrap();
        let name: CatalogName = "site".parse().unwrap();
        let catalog = Catalog {
            name,
            source,
            availability: Availability::Available,
            interval: None,
            policy: None,
            lookaside: None,
        };
        Self {
            registry,
            store,
            mirror,
            catalog,
        }
    }

    /// Another mirror takes over.
    pub(crate) fn restart_with(&mut self, settings: Settings) {
        self.mirror = mirror(&self.registry, &self.store, settings);
    }

    pub(crate) fn push(&self, files: &Files) {
        self.push_image(&catalogs::image(files));
    }

    pub(crate) fn push_image(&self, image: &Image) {
        self.registry.push("ns/catalog", "latest", image);
    }

    pub(crate) async fn turn(&self) -> Report {
        self.mirror.turn(&self.catalog, false).await
    }

    pub(crate) async fn current(&self) -> Current {
        let key = Key::Current(self.catalog.name.clone());
        self.store
            .read_document(&key)
            .await
            .unwrap()
            .expect("the catalog is published")
            .0
    }

    /// Everything that the current publication names is whole, whatever earlier ones name.
    pub(crate) async fn is_sound_now(&self) {
        let key = Key::Snapshot(self.catalog.name.clone(), self.current().await.content_hash);
        let (snapshot, _) = self.store.read_document::<Snapshot>(&key).await.unwrap().unwrap();
        for shard in snapshot.shards() {
            let examined = keep::examine(&self.store, &Key::Shard(shard.sha256)).await.unwrap();
            assert_eq!((examined.stored, examined.content), (shard.stored, Some(shard.sha256)));
        }
    }

    pub(crate) async fn is_sound(&self) {
        let found = keep::verify(&self.store as &dyn Store, &self.catalog.name)
            .await
            .unwrap();
        assert_eq!(found.findings, [], "{found:?}");
    }
}

fn mirror(registry: &Registry, store: &MemoryStore, settings: Settings) -> Mirror {
    let images = ImageSettings {
        plain_http: vec![registry.host().to_owned()],
        ..ImageSettings::default()
    };
    let images = Images::new(images).unwrap();
    Mirror::new(images, Arc::new(store.clone()), settings, Metrics::default())
}

/// Ten packages, so that one may go.
pub(crate) fn ten() -> Files {
    (0..10).map(|at| catalogs::package(&format!("p{at}"), 3)).collect()
}
