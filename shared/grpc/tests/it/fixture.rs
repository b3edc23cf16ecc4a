//! A server for catalogs of a store in memory.

use std::{collections::BTreeMap, sync::Arc};

use catalog_mirror_grpc::{GrpcMetrics, RegistryCatalogs, router};
use model::{CatalogName, Catalogs, Current, Document, Facts, Key};
use olm::FINDINGS;
use prometheus_client::{encoding::text, registry::Registry};
use reader::{PublishedCatalogs, ReaderSettings};
use server::{Server, ServerLimits, ServerMetrics};
use store::{Condition, Store, StoreExt};
use storekit::MemoryStore;
use testkit::{CurrentBuilder, SnapshotBuilder};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::Client;

/// Packages with every kind of bundle, for which the answers of opm are recorded.
pub(crate) const CRAFTED: &[u8] = include_bytes!("../recorded/crafted.jsonl");

/// Fields of the message `Bundle` that tests look at.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SentBundle {
    #[prost(string, tag = "1")]
    pub(crate) csv_name: String,
    #[prost(string, tag = "4")]
    pub(crate) csv_json: String,
    #[prost(string, repeated, tag = "5")]
    pub(crate) object: Vec<String>,
    #[prost(string, tag = "6")]
    pub(crate) bundle_path: String,
}

/// Returns the lines of a package with one bundle.
pub(crate) fn package(name: &str) -> String {
    format!(
        r#"{{"defaultChannel":"c","name":"{name}","schema":"olm.package"}}
{{"entries":[{{"name":"b"}}],"name":"c","package":"{name}","schema":"olm.channel"}}
{{"image":"x/y","name":"b","package":"{name}","properties":[],"schema":"olm.bundle"}}
"#
    )
}

/// Returns a Snapshot without Packages whose validation has found nothing.
pub(crate) fn valid() -> SnapshotBuilder {
    let findings: Facts = Facts::new(FINDINGS.version);
    SnapshotBuilder::new().facts(FINDINGS.name, &findings)
}

/// Groups canonical lines by package, as a publication does.
pub(crate) fn shards(lines: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut shards: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let meta: serde_json::Value = serde_json::from_slice(line).unwrap();
        let name = match meta["package"].as_str() {
            None if meta["schema"] == "olm.package" => meta["name"].as_str(),
            package => package,
        };
        let shard = shards.entry(name.unwrap_or_default().to_owned());
        shard.or_default().extend_from_slice(line);
    }
    shards
}

/// Returns the page of the metrics.
pub(crate) fn shown(registry: &Registry) -> String {
    let mut page = String::new();
    text::encode(&mut page, registry).unwrap();
    page
}

/// Catalogs in memory, which tests change.
#[derive(Clone, Debug)]
pub(crate) struct MemoryCatalogs(pub(crate) Arc<MemoryStore>);

impl MemoryCatalogs {
    pub(crate) fn new() -> Self {
        Self(Arc::new(MemoryStore::default()))
    }

    /// Returns one catalog with a package of its name.
    pub(crate) async fn of(name: &str) -> Self {
        Self::new().with(name, package(name)).await
    }

    /// Publishes a catalog whose validation has found nothing.
    pub(crate) async fn with(self, name: &str, lines: impl AsRef<[u8]>) -> Self {
        self.publish(name, lines.as_ref(), valid()).await;
        self
    }

    /// Publishes a catalog, and returns the keys of its objects.
    pub(crate) async fn publish(&self, name: &str, lines: &[u8], mut builder: SnapshotBuilder) -> Vec<Key> {
        for (package, lines) in shards(lines) {
            builder = builder.package(&package, lines);
        }
        let built = builder.build();
        for (key, bytes) in &built.objects {
            self.put(key, bytes.to_vec()).await;
        }
        let name: CatalogName = name.parse().unwrap();
        let key = Key::Current(name.clone());
        let before = self.0.read_document::<Current>(&key).await.unwrap();
        let current = CurrentBuilder::new(&built.snapshot).after(before.as_ref().map(|(current, _)| current));
        self.put(&key, current.build().to_bytes()).await;
        let mut names = self.names().await;
        names.push(name);
        self.set_names(names).await;
        built.objects.into_keys().collect()
    }

    pub(crate) async fn remove(&self, name: &str) {
        let name: CatalogName = name.parse().unwrap();
        self.0.delete(&Key::Current(name.clone())).await.unwrap();
        let names = self.names().await.into_iter().filter(|known| *known != name);
        self.set_names(names.collect()).await;
    }

    async fn names(&self) -> Vec<CatalogName> {
        let names = self.0.read_document::<Catalogs>(&Key::Catalogs).await.unwrap();
        names.map_or_else(Vec::new, |(names, _)| names.catalogs.into_iter().collect())
    }

    async fn set_names(&self, names: Vec<CatalogName>) {
        self.put(&Key::Catalogs, Catalogs::from_iter(names).to_bytes()).await;
    }

    pub(crate) async fn put(&self, key: &Key, bytes: Vec<u8>) {
        self.0.put(key, bytes.into(), Condition::Always).await.unwrap();
    }
}

/// A server on a free port. It ends when this is dropped.
pub(crate) struct TestServer {
    pub(crate) port: u16,
    /// Stops the server when it is dropped.
    _stop: DropGuard,
}

impl TestServer {
    pub(crate) async fn start(catalogs: &MemoryCatalogs, default: Option<&str>) -> Self {
        Self::start_counting(catalogs, default, &mut Registry::default()).await
    }

    /// Starts a server, and connects a client that asks this host.
    pub(crate) async fn connected(catalogs: &MemoryCatalogs, host: &str) -> (Self, Client) {
        let server = Self::start(catalogs, None).await;
        let client = Client::connect(server.port, host).await;
        (server, client)
    }

    /// Starts a server whose calls are counted, and connects a client.
    pub(crate) async fn counted(catalogs: &MemoryCatalogs) -> (Self, Client, Registry) {
        let mut registry = Registry::default();
        let server = Self::start_counting(catalogs, None, &mut registry).await;
        let client = Client::connect(server.port, "lab").await;
        (server, client, registry)
    }

    async fn start_counting(catalogs: &MemoryCatalogs, default: Option<&str>, registry: &mut Registry) -> Self {
        let server = Server::new(ServerLimits::grpc(), ServerMetrics::default(), None);
        Self::run(catalogs, default, GrpcMetrics::register(registry), server).await
    }

    pub(crate) async fn run(
        catalogs: &MemoryCatalogs,
        default: Option<&str>,
        metrics: GrpcMetrics,
        server: Server,
    ) -> Self {
        let stop = CancellationToken::new();
        let published = PublishedCatalogs::new(catalogs.0.clone(), ReaderSettings::default());
        let catalogs = Arc::new(RegistryCatalogs::new(published, default.map(str::to_owned), None));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(server.run(listener, router(catalogs, metrics), stop.clone()));
        Self {
            port,
            _stop: stop.drop_guard(),
        }
    }
}
