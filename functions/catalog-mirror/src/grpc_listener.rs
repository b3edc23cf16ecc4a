//! The listener of `serve --grpc`.

use std::{net::SocketAddr, sync::Arc};

use config::Config;
use futures_util::{FutureExt, future::BoxFuture};
use grpc::{GrpcMetrics, RegistryCatalogs};
use prometheus_client::registry::Registry;
use reader::PublishedCatalogs;
use server::{Server, ServerMetrics};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::GrpcArgs;
use crate::wiring;

/// Answers about catalogs until `stop` is cancelled, if there is a port to answer on. Returns its
/// address, a future that ends when the catalogs are ready to be served, and the task.
pub(crate) async fn start(
    args: &GrpcArgs,
    config: &Config,
    catalogs: PublishedCatalogs,
    registry: &mut Registry,
    stop: &CancellationToken,
) -> anyhow::Result<(
    Option<SocketAddr>,
    BoxFuture<'static, ()>,
    Vec<JoinHandle<()>>,
)> {
    let registry = registry.sub_registry_with_prefix("grpc");
    let metrics = GrpcMetrics::register(registry);
    let server_metrics = ServerMetrics::register(registry);
    let Some(address) = args.grpc else {
        return Ok((None, async {}.boxed(), Vec::new()));
    };
    let http = &config.server;
    let settings = &config.grpc;
    let asks = http.readers.is_some() || (http.tls_cert.is_some() && !settings.tls);
    anyhow::ensure!(
        !asks || settings.anonymous.is_some(),
        "clients of OLM v0 send neither credentials nor TLS, and the HTTP API asks for them: list the catalogs that all may \
         read, such as `grpc: {{anonymous: [community]}}`"
    );
    anyhow::ensure!(
        !settings.tls || http.tls_cert.is_some(),
        "grpc, tls: there is no certificate: set server.tlsCert and server.tlsKey"
    );
    let mut server = Server::new(http.grpc_limits.clone(), server_metrics, None);
    if settings.tls {
        server = wiring::with_tls(server, http)?;
    }
    let listener = wiring::bind(address, "--grpc").await?;
    let address = listener.local_addr()?;
    let mut anonymous = None;
    if let Some(names) = &settings.anonymous {
        anonymous = Some(names.iter().map(ToString::to_string).collect());
    }
    let default = args.grpc_catalog.as_ref().map(ToString::to_string);
    let catalogs = Arc::new(RegistryCatalogs::new(catalogs, default, anonymous));
    let router = grpc::router(catalogs.clone(), metrics);
    let serving = tokio::spawn(server.run(listener, router, stop.clone()));
    let followed = Arc::clone(&catalogs);
    let stop = stop.clone();
    let following = tokio::spawn(async move {
        stop.run_until_cancelled(followed.follow()).await;
    });
    let prepared = async move { catalogs.prepare().await };
    Ok((Some(address), prepared.boxed(), vec![serving, following]))
}
