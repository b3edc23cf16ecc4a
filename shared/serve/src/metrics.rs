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

use crate::route::Route;

/// The statuses that are answered; anything else is counted with the last.
const STATUSES: [u16; 12] = [200, 206, 304, 307, 400, 404, 405, 406, 412, 416, 503, 500];

/// What is counted of requests. Each counter is found once and then only added to: a request takes no lock for its
/// labels and makes no text.
#[derive(Debug, Clone)]
pub struct Metrics {
    routes: Arc<[RouteMetrics]>,
    requests: Family<RequestLabels, Counter>,
}

#[derive(Debug)]
struct RouteMetrics {
    route: Route,
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

impl Metrics {
    /// Adds the metrics of requests to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let requests = Family::<RequestLabels, Counter>::default();
        let bytes = Family::<RouteLabels, Counter>::default();
        let seconds = Family::<RouteLabels, Histogram>::new_with_constructor(histogram);
        registry.register(
            "http_requests",
            "Requests by route and status; 304 are those that the client's cache answered",
            requests.clone(),
        );
        registry.register_with_unit("http_response_body", "Bodies sent by route", Unit::Bytes, bytes.clone());
        registry.register_with_unit(
            "http_request_duration",
            "From the head of the request to the head of the response",
            Unit::Seconds,
            seconds.clone(),
        );
        let of_route = |route: Route| {
            let labels = RouteLabels { route: route.as_str() };
            RouteMetrics {
                route,
                statuses: Default::default(),
                bytes: bytes.get_or_create_owned(&labels),
                seconds: seconds.get_or_create_owned(&labels),
            }
        };
        Self {
            routes: Route::ALL.map(of_route).into(),
            requests,
        }
    }

    pub(crate) fn answered(&self, route: Route, status: StatusCode, took: Duration) {
        let metrics = &self.routes[route as usize];
        let at = STATUSES.iter().position(|&known| known == status.as_u16());
        let at = at.unwrap_or(STATUSES.len() - 1);
        let labels = || RequestLabels {
            route: metrics.route.as_str(),
            status: STATUSES[at],
        };
        metrics.statuses[at]
            .get_or_init(|| self.requests.get_or_create_owned(&labels()))
            .inc();
        metrics.seconds.observe(took.as_secs_f64());
    }

    /// The counter of body bytes of a route.
    pub(crate) fn bytes(&self, route: Route) -> &Counter {
        &self.routes[route as usize].bytes
    }
}

impl Default for Metrics {
    /// Metrics that nobody reads.
    fn default() -> Self {
        Self::register(&mut Registry::default())
    }
}

/// From 16 microseconds, a cached answer, to 4 seconds, a large index read from far away.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_016, 4.0, 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_status() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        for status in [StatusCode::OK, StatusCode::NOT_MODIFIED, StatusCode::NOT_MODIFIED] {
            metrics.answered(Route::All, status, Duration::from_micros(20));
        }
        metrics.bytes(Route::All).inc_by(7);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "http_requests_total{route=\"all\",status=\"200\"} 1",
            "http_requests_total{route=\"all\",status=\"304\"} 2",
            "http_response_body_bytes_total{route=\"all\"} 7",
            "http_request_duration_seconds_count{route=\"all\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn routes_are_where_their_number_says() {
        for (at, route) in Route::ALL.into_iter().enumerate() {
            assert_eq!(route as usize, at);
        }
    }
}
