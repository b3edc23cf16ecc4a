//! A mirror of one catalog with a store in memory, and the images and packages of the tests.

use std::fs;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use model::{Current, Key, Snapshot, Status};
use publish::{
    Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions, Report, SourceLimits, ValidationMode,
};
use source::{FetchSettings, Proxy, RetrySchedule, Source, SourceSettings, Sources};
use store::{StoreExt, read_stored};
use storekit::MemoryStore;
use tempfile::TempDir;
use testkit::{Image, ImageBuilder, Layer, Registry};

pub(crate) struct Site<S> {
    /// Folder or registry of the catalog.
    pub(crate) origin: S,
    pub(crate) store: MemoryStore,
    pub(crate) mirror: Mirror,
    pub(crate) catalog: Catalog,
}

impl Site<TempDir> {
    /// Returns a mirror of a folder with the valid packages a, b and c.
    pub(crate) fn folder(validation: ValidationMode) -> Self {
        // Shared: setting up TLS for each one would take most of the time.
        static IMAGES: LazyLock<Sources> = LazyLock::new(|| images(&SourceLimits::default()));
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Dir(folder.path().to_owned());
        let mut site = Self::new(
            folder,
            source,
            IMAGES.clone(),
            settings(&SourceLimits::default()),
        );
        site.catalog.validation = validation;
        ["a", "b", "c"]
            .iter()
            .for_each(|name| site.write(name, &package(name)));
        site
    }

    pub(crate) fn write(&self, package: &str, text: &str) {
        fs::write(self.origin.path().join(format!("{package}.yaml")), text).unwrap();
    }
}

impl Site<Registry> {
    /// Returns a mirror of an image that the registry does not have yet.
    pub(crate) async fn registry(images: Sources, settings: MirrorSettings) -> Self {
        let registry = Registry::start().await;
        let source = registry.reference("ns/cat", "v1").parse().unwrap();
        Self::new(registry, source, images, settings)
    }

    pub(crate) fn push(&self, image: &Image) {
        self.origin.push("ns/cat", "v1", image);
    }
}

impl<S> Site<S> {
    fn new(origin: S, source: Source, images: Sources, settings: MirrorSettings) -> Self {
        let store = MemoryStore::new();
        Self {
            mirror: mirror(images, &store, settings, PollMetrics::default()),
            catalog: Catalog::new("c".parse().unwrap(), source),
            origin,
            store,
        }
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

    pub(crate) async fn snapshot(&self) -> Snapshot {
        let key = Key::Current(self.catalog.name.clone());
        let (current, _) = self
            .store
            .read_document::<Current>(&key)
            .await
            .unwrap()
            .unwrap();
        read_stored(&self.store, &current.snapshot.digest)
            .await
            .unwrap()
    }

    pub(crate) async fn status(&self) -> Status {
        status(&self.store, &self.catalog).await.unwrap()
    }

    pub(crate) async fn is_sound(&self, what: &str) {
        let found = upkeep::verify(&self.store, &self.catalog.name)
            .await
            .unwrap();
        assert_eq!(found.findings, [], "{what}");
    }
}

pub(crate) async fn status(store: &MemoryStore, catalog: &Catalog) -> Option<Status> {
    let read = store
        .read_document(&Key::Status(catalog.name.clone()))
        .await
        .unwrap();
    read.map(|(status, _)| status)
}

pub(crate) fn mirror(
    images: Sources,
    store: &MemoryStore,
    settings: MirrorSettings,
    metrics: PollMetrics,
) -> Mirror {
    Mirror::new(images, Arc::new(store.clone()), settings, metrics)
}

/// Reads images of registries on this machine.
pub(crate) fn images(limits: &SourceLimits) -> Sources {
    let settings = SourceSettings {
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
        ..SourceSettings::default()
    };
    Sources::new(settings).unwrap()
}

pub(crate) fn settings(limits: &SourceLimits) -> MirrorSettings {
    let render = render::RenderSettings {
        // Nothing here is about how small the result is.
        workers: 1,
        shard_level: 1,
        gzip_level: 1,
        ..render::RenderSettings::default()
    };
    MirrorSettings {
        render,
        ..MirrorSettings::with_limits(limits)
    }
}

/// Returns the metrics as a page.
pub(crate) fn page(metrics: &prometheus_client::registry::Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, metrics).unwrap();
    text
}

/// Returns an image of these layers, the lowest first, with the FBC root `/configs`.
pub(crate) fn image(layers: impl IntoIterator<Item = Layer>) -> Image {
    rooted("/configs", layers)
}

pub(crate) fn rooted(root: &str, layers: impl IntoIterator<Item = Layer>) -> Image {
    let builder = ImageBuilder::catalog(root);
    layers
        .into_iter()
        .fold(builder, ImageBuilder::layer)
        .build()
}

/// Returns a layer whose only file is the FBC of one package without bundles.
pub(crate) fn layer(path: &str, package: &str) -> Layer {
    Layer::new().file(path, format!("schema: olm.package\nname: {package}\n"))
}

/// Returns a valid package of one bundle.
pub(crate) fn package(package: &str) -> String {
    format!(
        "schema: olm.package\nname: {package}\ndefaultChannel: stable\n---\n\
         schema: olm.channel\npackage: {package}\nname: stable\nentries: [{{name: {package}.v1}}]\n---\n\
         schema: olm.bundle\npackage: {package}\nname: {package}.v1\nimage: r.example/{package}:v1\n\
         properties: [{{type: olm.package, value: {{packageName: {package}, version: 1.0.0}}}}]\n"
    )
}
