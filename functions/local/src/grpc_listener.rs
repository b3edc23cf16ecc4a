//! The listener of `serve --grpc`.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::Context;
use config::Config;
use grpc::{GrpcMetrics, RegistryApi, RegistryCatalogs};
use reader::PublishedCatalogs;
use server::{Server, ServerLimits, ServerMetrics};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{commands::serve::ServeArgs, wiring};

/// Listener that is configured and not running yet.
pub(crate) struct GrpcListener {
    server: Server,
    listener: TcpListener,
    default: Option<String>,
    anonymous: Option<BTreeSet<String>>,
    metrics: GrpcMetrics,
}

impl GrpcListener {
    /// Binds the port, if there is one to bind.
    pub(crate) async fn bind(
        args: &ServeArgs,
        config: &Config,
        metrics: GrpcMetrics,
        server_metrics: ServerMetrics,
    ) -> anyhow::Result<Option<Self>> {
        let Some(address) = args.grpc else {
            return Ok(None);
        };
        let (http, settings) = (&config.server, &config.grpc);
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
        let default = ServerLimits::grpc();
        let limits = ServerLimits {
            connections: http.limits.grpc_connections.unwrap_or(default.connections),
            streams: http.limits.grpc_streams.unwrap_or(default.streams),
            ..wiring::with_times(&default, http)
        };
        let server = Server::new(limits, server_metrics).for_grpc();
        let server = if settings.tls {
            wiring::with_tls(server, http)?
        } else {
            server
        };
        let listener = TcpListener::bind(address).await;
        let listener =
            listener.with_context(|| format!("cannot listen on {address} (choose another address with --grpc)"))?;
        let anonymous = settings.anonymous.as_ref();
        Ok(Some(Self {
            server,
            listener,
            default: args.grpc_catalog.as_ref().map(ToString::to_string),
            anonymous: anonymous.map(|names| names.iter().map(ToString::to_string).collect()),
            metrics,
        }))
    }

    /// Starts to answer about catalogs until `stop` is cancelled. Returns the catalogs as they are served, and the task.
    ///
    /// # Errors
    /// Fails if the address of the port cannot be told.
    pub(crate) fn start(
        self,
        catalogs: PublishedCatalogs,
        stop: &CancellationToken,
    ) -> anyhow::Result<(Arc<RegistryCatalogs>, JoinHandle<()>)> {
        let catalogs = Arc::new(RegistryCatalogs::new(catalogs, self.default, self.anonymous));
        let api = RegistryApi {
            catalogs: catalogs.clone(),
            metrics: self.metrics,
            stopping: stop.clone(),
        };
        tracing::info!(address = %self.listener.local_addr()?, "answering the registry API");
        let serving = tokio::spawn(self.server.run(self.listener, api.router(), stop.clone()));
        Ok((catalogs, serving))
    }
}
