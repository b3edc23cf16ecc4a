use std::sync::{Arc, OnceLock};
use std::time::Instant;

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};
use prometheus_client::registry::{Registry, Unit};
use tonic::{Code, Status};

/// Metrics of calls. Clients name no labels: methods are those of the routes, and catalogs those
/// that are published.
#[derive(Debug, Clone)]
pub struct GrpcMetrics {
    calls: Family<Labels<3>, Counter>,
    seconds: Family<Labels<1>, Histogram>,
    running: Gauge,
}

/// Names of labels with their values.
type Labels<const N: usize> = [(&'static str, String); N];

impl GrpcMetrics {
    /// Adds the metrics of calls to a registry, whose prefix says that they are of gRPC.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            calls: Family::default(),
            seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_064, 4.0, 10))
            }),
            running: Gauge::default(),
        };
        let help = "gRPC calls that ended, by method, catalog and status code";
        registry.register("calls", help, metrics.calls.clone());
        let help = "Time from the request to the last message, by method";
        registry.register_with_unit(
            "call_duration",
            help,
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register(
            "calls_running",
            "gRPC calls that are running",
            metrics.running.clone(),
        );
        metrics
    }

    pub(crate) fn begin(&self, method: &'static str) -> CallTimer {
        self.running.inc();
        CallTimer {
            metrics: self.clone(),
            method,
            catalog: Arc::default(),
            // A call that is dropped was given up by its client.
            code: Code::Cancelled,
            began: Instant::now(),
        }
    }
}

/// Counts a call when it is dropped.
pub(crate) struct CallTimer {
    metrics: GrpcMetrics,
    method: &'static str,
    /// Name of the catalog that is asked, once it is chosen.
    pub(crate) catalog: Arc<OnceLock<String>>,
    code: Code,
    began: Instant,
}

impl CallTimer {
    /// Notes the result of the call.
    pub(crate) fn ended(&mut self, result: &Result<(), Status>) {
        self.code = result.as_ref().map_or_else(Status::code, |()| Code::Ok);
    }
}

impl Drop for CallTimer {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let code = name(self.code);
        tracing::debug!(%code, took_us = took.as_micros(), "answered call");
        let catalog = self.catalog.get().cloned().unwrap_or_default();
        let method = ("method", self.method.to_owned());
        let labels = [method.clone(), ("catalog", catalog), ("code", code)];
        let seconds = self.metrics.seconds.get_or_create_owned(&[method]);
        self.metrics.calls.get_or_create_owned(&labels).inc();
        seconds.observe(took.as_secs_f64());
        self.metrics.running.dec();
    }
}

/// Returns the name of a code as gRPC writes it, such as `NOT_FOUND`.
fn name(code: Code) -> String {
    let mut name = String::new();
    for char in format!("{code:?}").chars() {
        if char.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(char.to_ascii_uppercase());
    }
    name
}
