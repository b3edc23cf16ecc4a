use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::StatusCode;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

use crate::routes::ROUTES;

/// Statuses that are counted by themselves. Any other one is counted as the last.
const STATUSES: [u16; 15] = [
    200, 206, 304, 307, 400, 404, 405, 406, 410, 412, 413, 416, 429, 503, 500,
];

/// Value of the `route` label for paths without a route. Paths themselves would be labels without number.
const UNMATCHED: &str = "unmatched";

/// HttpMetrics of requests, by the route's path. Each counter is looked up once and then only added to: a request takes no lock
/// for its labels and formats no text.
#[derive(Debug, Clone)]
pub struct HttpMetrics {
    routes: Arc<[RouteMetrics]>,
    requests: Family<RequestLabels, Counter>,
}

#[derive(Debug)]
struct RouteMetrics {
    route: &'static str,
    statuses: [OnceLock<Counter>; STATUSES.len()],
    bytes: Counter,
    seconds: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

impl HttpMetrics {
    /// Adds the metrics of requests to a registry, one series for each route.
    pub fn register(registry: &mut Registry) -> Self {
        let requests = Family::<RequestLabels, Counter>::default();
        let bytes = Family::<RouteLabels, Counter>::default();
        let seconds = Family::<RouteLabels, Histogram>::new_with_constructor(histogram);
        registry.register(
            "http_requests",
            "Requests by route and status; a 304 was answered from the client's cache",
            requests.clone(),
        );
        registry.register_with_unit(
            "http_response_body",
            "Bytes of bodies sent, by route",
            Unit::Bytes,
            bytes.clone(),
        );
        registry.register_with_unit(
            "http_request_duration",
            "Time from the head of the request to the head of the response, by route",
            Unit::Seconds,
            seconds.clone(),
        );
        let of_route = |route: &'static str| {
            let labels = RouteLabels { route };
            RouteMetrics {
                route,
                statuses: Default::default(),
                bytes: bytes.get_or_create_owned(&labels),
                seconds: seconds.get_or_create_owned(&labels),
            }
        };
        Self {
            routes: ROUTES
                .iter()
                .map(|route| route.path)
                .chain([UNMATCHED])
                .map(of_route)
                .collect(),
            requests,
        }
    }

    /// Counts an answer. `route` is the position of the route in [`ROUTES`]; `None` for a path without a route.
    pub(crate) fn answered(&self, route: Option<usize>, status: StatusCode, took: Duration) {
        let metrics = &self.routes[route.unwrap_or(ROUTES.len())];
        let at = STATUSES.iter().position(|&known| known == status.as_u16());
        let at = at.unwrap_or(STATUSES.len() - 1);
        let labels = || RequestLabels {
            route: metrics.route,
            status: STATUSES[at],
        };
        metrics.statuses[at]
            .get_or_init(|| self.requests.get_or_create_owned(&labels()))
            .inc();
        metrics.seconds.observe(took.as_secs_f64());
    }

    /// Returns the counter of body bytes of a route.
    pub(crate) fn bytes(&self, route: usize) -> &Counter {
        &self.routes[route].bytes
    }
}

impl Default for HttpMetrics {
    /// Returns metrics that are not in any registry.
    fn default() -> Self {
        Self::register(&mut Registry::default())
    }
}

/// Buckets from 16 microseconds, a cached answer, to 4 seconds, a large index read from far away.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_016, 4.0, 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answered_counts_by_route_and_status() {
        let mut registry = Registry::default();
        let metrics = HttpMetrics::register(&mut registry);
        let all = ROUTES
            .iter()
            .position(|route| route.path.ends_with("/all.json"))
            .unwrap();
        for status in [StatusCode::OK, StatusCode::NOT_MODIFIED, StatusCode::NOT_MODIFIED] {
            metrics.answered(Some(all), status, Duration::from_micros(20));
        }
        metrics.answered(None, StatusCode::NOT_FOUND, Duration::from_micros(20));
        metrics.bytes(all).inc_by(7);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "http_requests_total{route=\"/catalogs/{catalog}/all.json\",status=\"200\"} 1",
            "http_requests_total{route=\"/catalogs/{catalog}/all.json\",status=\"304\"} 2",
            "http_requests_total{route=\"unmatched\",status=\"404\"} 1",
            "http_response_body_bytes_total{route=\"/catalogs/{catalog}/all.json\"} 7",
            "http_request_duration_seconds_count{route=\"/catalogs/{catalog}/all.json\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
