use std::fmt;
use std::future::ready;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};
use strum::IntoStaticStr;
use work::AnswerMemory;

/// Label of a metric, with one of its values.
type Label = [(&'static str, &'static str); 1];

/// Metrics of connections, logins and reloaded files.
#[derive(Debug, Clone, Default)]
pub struct ServerMetrics {
    pub(crate) open: Gauge,
    closed: Family<Label, Counter>,
    pub(crate) logins: Family<Label, Counter>,
    broken: Family<Label, Gauge>,
    pub(crate) answers: AnswerMetrics,
}

/// Metrics of the memory for answers, read when the page is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerMetrics(Arc<OnceLock<AnswerMemory>>);

impl AnswerMetrics {
    /// Shows the memory of a server. That of a second server with the same metrics is not shown.
    pub(crate) fn show(&self, memory: &AnswerMemory) {
        self.0.get_or_init(|| memory.clone());
    }
}

impl Collector for AnswerMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(memory) = self.0.get() else {
            return Ok(());
        };
        let help = "Memory that the answers being made and sent have taken";
        ConstGauge::new(i64::try_from(memory.taken()).unwrap_or(i64::MAX)).encode(
            encoder.encode_descriptor(
                "answer_memory_taken",
                help,
                Some(&Unit::Bytes),
                MetricType::Gauge,
            )?,
        )?;
        let help = "Memory that answers may take at a time";
        ConstGauge::new(i64::try_from(memory.capacity()).unwrap_or(i64::MAX)).encode(
            encoder.encode_descriptor(
                "answer_memory_limit",
                help,
                Some(&Unit::Bytes),
                MetricType::Gauge,
            )?,
        )?;
        let help = "Answers that were refused because others took all memory";
        ConstCounter::new(memory.refused()).encode(encoder.encode_descriptor(
            "answers_refused",
            help,
            None,
            MetricType::Counter,
        )?)
    }
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
    /// The client has asked for something that is outdated, and should ask again.
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
        registry.register_collector(Box::new(metrics.answers.clone()));
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
    let registry = Arc::new(registry);
    let refresh = Arc::new(refresh);
    let route = get(move || {
        refresh();
        let mut page = String::new();
        let encoded = text::encode(&mut page, &registry);
        let encoded = encoded.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR);
        ready(encoded.map(|()| ([(CONTENT_TYPE, OPENMETRICS)], page)))
    });
    Router::new().route("/metrics", route)
}
