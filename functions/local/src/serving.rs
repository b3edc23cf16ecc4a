//! Parts that every server of this program needs: `/metrics`, a port, and signals.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context;
use axum::{Router, http::header::CONTENT_TYPE, response::IntoResponse, routing::get};
use prometheus_client::{encoding::text, registry::Registry};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The page `/metrics` with the metrics of all parts.
pub(crate) struct MetricsPage {
    pub(crate) registry: Registry,
    /// Metrics of polls. Their ages are computed when the page is asked for.
    pub(crate) polls: publish::PollMetrics,
    /// Names of the catalogs whose ages are shown.
    pub(crate) catalogs: Vec<String>,
}

impl MetricsPage {
    fn text(&self) -> Result<String, std::fmt::Error> {
        self.polls.refresh(self.catalogs.iter().map(String::as_str));
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }

    /// Returns the route `/metrics`, which encodes the registry for each request.
    pub(crate) fn route(self) -> Router {
        let page = Arc::new(Mutex::new(self));
        let answer = move || {
            let page = page.lock().unwrap_or_else(PoisonError::into_inner).text();
            async move {
                page.map(|page| ([(CONTENT_TYPE, OPENMETRICS)], page))
                    .map_err(|_| axum::http::StatusCode::INTERNAL_SERVER_ERROR)
                    .into_response()
            }
        };
        Router::new().route("/metrics", get(answer))
    }
}

/// Binds a TCP port. An error names the option that chooses another one.
pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address} (choose another address with --listen)"))
}

/// Returns a token that the first SIGTERM or SIGINT cancels. A second signal ends the program at once.
pub(crate) fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let cancel = stop.clone();
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            if !first {
                // The user does not want to wait for running answers.
                std::process::exit(1);
            }
            tracing::info!("stopping after a signal");
            cancel.cancel();
        }
    });
    Ok(stop)
}
