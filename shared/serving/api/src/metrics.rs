use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// Value of the `route` label for paths without a route. Paths themselves would be labels without
/// number.
pub(crate) const UNMATCHED: &str = "unmatched";

/// Path of a route with its parameters in braces, as a label.
type RouteLabel = [(&'static str, &'static str); 1];

/// Metrics of requests, by the route's path.
#[derive(Debug, Clone)]
pub struct HttpMetrics {
    requests: Family<RequestLabels, Counter>,
    bytes: Family<RouteLabel, Counter>,
    seconds: Family<RouteLabel, Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
}

impl HttpMetrics {
    /// Adds the metrics of requests to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            bytes: Family::default(),
            // From 16 microseconds, a cached answer, to 4 seconds, a large index read from far
            // away.
            seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_016, 4.0, 10))
            }),
        };
        let help = "Requests by route and status; a 304 was answered from the client's cache";
        registry.register("http_requests", help, metrics.requests.clone());
        let help = "Bytes of bodies sent, by route";
        registry.register_with_unit(
            "http_response_body",
            help,
            Unit::Bytes,
            metrics.bytes.clone(),
        );
        let help = "Time from the head of the request to the head of the response, by route";
        registry.register_with_unit(
            "http_request_duration",
            help,
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        metrics
    }

    /// Counts an answer. `route` is the path of the route, or [`UNMATCHED`].
    pub(crate) fn answered(&self, route: &'static str, status: StatusCode, took: Duration) {
        let status = status.as_u16();
        self.requests
            .get_or_create(&RequestLabels { route, status })
            .inc();
        let seconds = self.seconds.get_or_create(&[("route", route)]);
        seconds.observe(took.as_secs_f64());
    }

    /// Returns the counter of body bytes of a route.
    pub(crate) fn bytes(&self, route: &'static str) -> Counter {
        self.bytes.get_or_create_owned(&[("route", route)])
    }
}

impl Default for HttpMetrics {
    /// Returns metrics that are not in any registry.
    fn default() -> Self {
        Self::register(&mut Registry::default())
    }
}
