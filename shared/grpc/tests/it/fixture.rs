//! A server for catalogs in memory.

use std::sync::Arc;

use catalog_mirror_grpc::{GrpcMetrics, RegistryApi};
use server::{Server, ServerLimits, ServerMetrics};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use crate::memory::{CHUNK, MemoryCatalogs, MemoryState};

/// Packages with every kind of bundle, for which the answers of opm are recorded.
pub(crate) const CRAFTED: &[u8] = include_bytes!("../../../registry/tests/recorded/crafted.jsonl");

/// Returns a catalog with one package of one bundle.
pub(crate) fn package(name: &str) -> Arc<MemoryState> {
    MemoryState::of_lines(
        format!(
            r#"{{"defaultChannel":"c","name":"{name}","schema":"olm.package"}}
{{"entries":[{{"name":"b"}}],"name":"c","package":"{name}","schema":"olm.channel"}}
{{"image":"x/y","name":"b","package":"{name}","properties":[],"schema":"olm.bundle"}}
"#
        )
        .as_bytes(),
    )
}

/// A server on a free port. It ends when this is dropped.
pub(crate) struct TestServer {
    pub(crate) port: u16,
    /// Stops the server when it is dropped.
    pub(crate) stop: DropGuard,
}

impl TestServer {
    pub(crate) async fn start(catalogs: &MemoryCatalogs, default: Option<&str>) -> Self {
        let metrics = (GrpcMetrics::default(), ServerMetrics::default());
        Self::start_with(catalogs, default, ServerLimits::grpc(), metrics).await
    }

    pub(crate) async fn start_with(
        catalogs: &MemoryCatalogs,
        default: Option<&str>,
        limits: ServerLimits,
        (metrics, server_metrics): (GrpcMetrics, ServerMetrics),
    ) -> Self {
        let server = Server::new(limits, server_metrics).for_grpc();
        Self::run(catalogs, default, metrics, server).await
    }

    pub(crate) async fn run(
        catalogs: &MemoryCatalogs,
        default: Option<&str>,
        metrics: GrpcMetrics,
        server: Server,
    ) -> Self {
        let stop = CancellationToken::new();
        let api = RegistryApi {
            published: Arc::new(catalogs.clone()),
            default: default.map(Into::into),
            metrics,
            stopping: stop.clone(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(server.run(listener, api.router(), stop.clone()));
        Self {
            port,
            stop: stop.drop_guard(),
        }
    }
}
