use std::{future::ready, sync::Arc};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use strum::IntoStaticStr;

/// Label of a metric, with one of its values.
type Label = [(&'static str, &'static str); 1];

/// Metrics of connections, logins and reloaded files.
#[derive(Debug, Clone, Default)]
pub struct ServerMetrics {
    pub(crate) open: Gauge,
    closed: Family<Label, Counter>,
    pub(crate) logins: Family<Label, Counter>,
    broken: Family<Label, Gauge>,
}

/// Reason for which the server refused or closed a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum CloseReason {
    /// The limit of connections was reached.
    Full,
    /// The TLS handshake failed or took too long.
    Handshake,
    /// The first request did not come in time.
    Silent,
    /// The next request did not come in time.
    Idle,
    /// The connection was idle when a new one needed its place.
    Replaced,
    /// What the client has asked for is outdated, and it should ask again.
    Outdated,
    /// The client took too little of its answer.
    Stalled,
    /// The server stopped, and the answer was not finished in time.
    Drained,
}

/// Result of checking the credentials of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum LoginOutcome {
    /// The credentials are right, and the user may read.
    Accepted,
    /// The credentials are missing or wrong (401).
    Refused,
    /// Too many passwords are being verified (429).
    Busy,
}

impl ServerMetrics {
    /// Adds the metrics of the server to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "connections",
            "Connections that are open",
            metrics.open.clone(),
        );
        let help = "Connections that the server closed or refused, by reason";
        registry.register("connections_closed", help, metrics.closed.clone());
        let help = "Requests by the result of checking their credentials";
        registry.register("logins", help, metrics.logins.clone());
        let help = "1 while a changed file cannot be used and its previous content is in use";
        registry.register("file_broken", help, metrics.broken.clone());
        metrics
    }

    pub(crate) fn count_closed(&self, reason: CloseReason) {
        let reason: &'static str = reason.into();
        tracing::debug!(reason, "closed connection");
        self.closed.get_or_create(&[("reason", reason)]).inc();
    }

    pub(crate) fn set_broken(&self, file: &'static str, broken: bool) {
        self.broken
            .get_or_create(&[("file", file)])
            .set(broken.into());
    }
}

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the route `/metrics` with the metrics of all parts of a program. `refresh` is called
/// before each answer, for metrics such as ages, which are computed when the page is asked for.
pub fn metrics_route(registry: Registry, refresh: impl Fn() + Send + Sync + 'static) -> Router {
    let parts = Arc::new((registry, refresh));
    let answer = move || {
        let (registry, refresh) = &*parts;
        refresh();
        let mut page = String::new();
        let encoded =
            text::encode(&mut page, registry).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR);
        ready(encoded.map(|()| ([(CONTENT_TYPE, OPENMETRICS)], page)))
    };
    Router::new().route("/metrics", get(answer))
}
