//! The HTTP server: the mirror's routes and `/metrics`.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context;
use axum::{Router, http::header::CONTENT_TYPE, response::IntoResponse, routing::get, serve::ListenerExt};
use prometheus_client::{encoding::text, registry::Registry};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

/// How long answers under way may take once the program is told to stop.
const DRAIN: Duration = Duration::from_secs(20);
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of all parts, and what keeps their ages up to date.
pub(crate) struct MetricsPage {
    pub(crate) registry: Registry,
    pub(crate) polls: poll::Metrics,
    pub(crate) catalogs: Vec<String>,
}

impl MetricsPage {
    fn text(&self) -> Result<String, std::fmt::Error> {
        self.polls.refresh(self.catalogs.iter().map(String::as_str));
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }

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

/// Takes the port, so that a port that is taken is reported before anything else happens.
pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address} (choose another address with --listen)"))
}

/// Serves until `stop`, then finishes the answers under way.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> anyhow::Result<()> {
    let listener = listener.tap_io(|stream| {
        // Small answers must not wait for the acknowledgement of the ones before them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
    });
    let server = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    tokio::select! {
        served = async { server.await } => served.context("the server failed"),
        () = too_late(stop) => {
            tracing::warn!(drain_s = DRAIN.as_secs(), "answers under way were cut off");
            Ok(())
        }
    }
}

async fn too_late(stop: CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(DRAIN).await;
}

/// Cancels the token on the first SIGTERM or SIGINT; a second one ends the program at once.
pub(crate) fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let cancel = stop.clone();
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            if !first {
                std::process::exit(1);
            }
            tracing::info!("stopping");
            cancel.cancel();
        }
    });
    Ok(stop)
}
