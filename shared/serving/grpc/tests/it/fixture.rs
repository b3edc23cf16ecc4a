//! A server for catalogs of a store in memory.

use std::{collections::BTreeMap, sync::Arc};

use fbc::{Chunks, FbcLimits, Meta};
use grpc::{GrpcMetrics, RegistryCatalogs, olm_v0::api::CustomSchemasRequest, router};
use model::{Catalogs, Current, Document, Facts, Key};
use olm::FINDINGS;
use prometheus_client::{encoding::text, registry::Registry};
use reader::{PublishedCatalogs, ReaderSettings};
use server::{Server, ServerLimits, ServerMetrics};
use store::{Store, StoreExt};
use storekit::{MemoryStore, conformance::put};
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

/// Returns the request for the Metas of the schema `custom` in the package `p`.
pub(crate) fn custom_schemas() -> CustomSchemasRequest {
    CustomSchemasRequest {
        schema: "custom".to_owned(),
        package_name: "p".to_owned(),
    }
}

/// Returns a Snapshot without Packages whose validation has found nothing.
pub(crate) fn valid() -> SnapshotBuilder {
    SnapshotBuilder::new().facts(FINDINGS.name, &<Facts>::new(FINDINGS.version))
}

/// Returns the canonical lines of a file by package.
pub(crate) fn shards(file: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut shards: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for chunk in Chunks::new(file, FbcLimits::default(), 1 << 20) {
        let mut add = |meta: Meta<'_>| {
            shards
                .entry(meta.group().to_owned())
                .or_default()
                .extend(meta.line);
        };
        chunk
            .unwrap()
            .metas(&FbcLimits::default(), &mut add)
            .unwrap();
    }
    shards
}

/// Catalogs in memory, which tests change.
#[derive(Clone, Debug)]
pub(crate) struct MemoryCatalogs(pub(crate) Arc<MemoryStore>);

impl MemoryCatalogs {
    pub(crate) fn new() -> Self {
        Self(Arc::new(MemoryStore::default()))
    }

    /// Returns catalogs with a package of their name each.
    pub(crate) async fn of(names: &[&str]) -> Self {
        let mut catalogs = Self::new();
        for name in names {
            catalogs = catalogs.with(name, package(name)).await;
        }
        catalogs
    }

    /// Publishes a catalog whose validation has found nothing.
    pub(crate) async fn with(self, name: &str, file: impl AsRef<[u8]>) -> Self {
        self.publish(name, file.as_ref(), valid()).await
    }

    pub(crate) async fn publish(
        self,
        name: &str,
        file: &[u8],
        mut builder: SnapshotBuilder,
    ) -> Self {
        for (package, lines) in shards(file) {
            builder = builder.package(&package, lines);
        }
        let built = builder.build();
        for (key, bytes) in &built.objects {
            put(&*self.0, key, bytes.to_vec()).await;
        }
        let key = Key::Current(name.parse().unwrap());
        let before = self.0.read_document::<Current>(&key).await.unwrap();
        let current =
            CurrentBuilder::new(&built.snapshot).after(before.as_ref().map(|(current, _)| current));
        put(&*self.0, &key, current.build().to_bytes()).await;
        self.list().await;
        self
    }

    pub(crate) async fn remove(&self, name: &str) {
        self.0
            .delete(&Key::Current(name.parse().unwrap()))
            .await
            .unwrap();
        self.list().await;
    }

    /// Writes the list of the catalogs that have a pointer.
    async fn list(&self) {
        let keys = self.0.objects().into_keys();
        let names = keys.filter_map(|key| match key {
            Key::Current(name) => Some(name),
            _ => None,
        });
        put(
            &*self.0,
            &Key::Catalogs,
            names.collect::<Catalogs>().to_bytes(),
        )
        .await;
    }
}

/// A server on a free port, which counts its calls. It ends when this is dropped.
pub(crate) struct TestServer {
    pub(crate) port: u16,
    registry: Registry,
    /// Stops the server when it is dropped.
    _stop: DropGuard,
}

impl TestServer {
    /// Starts a server, and connects a client that asks this host.
    pub(crate) async fn connected(catalogs: &MemoryCatalogs, host: &str) -> (Self, Client) {
        let server = Self::start(catalogs, None, ServerLimits::grpc()).await;
        let client = Client::connect(server.port, host).await;
        (server, client)
    }

    pub(crate) async fn start(
        catalogs: &MemoryCatalogs,
        default: Option<&str>,
        limits: ServerLimits,
    ) -> Self {
        let mut registry = Registry::default();
        let metrics = GrpcMetrics::register(&mut registry);
        let stop = CancellationToken::new();
        let published = PublishedCatalogs::new(catalogs.0.clone(), ReaderSettings::default());
        let catalogs = Arc::new(RegistryCatalogs::new(
            published,
            default.map(str::to_owned),
            None,
        ));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Server::new(limits, ServerMetrics::register(&mut registry), None);
        let following = Arc::clone(&catalogs);
        tokio::spawn(async move { following.follow().await });
        tokio::spawn(server.run(listener, router(catalogs, metrics), stop.clone()));
        Self {
            port,
            registry,
            _stop: stop.drop_guard(),
        }
    }

    /// Returns the page of the metrics.
    pub(crate) fn metrics(&self) -> String {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).unwrap();
        page
    }
}
