//! Metrics of the work on ClusterCatalogs.

use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use publish::metric;

use crate::election::Role;

/// Shortest time that is told apart, in seconds: an object that needs nothing. Ten buckets of the
/// factor four reach 4 minutes.
const SHORTEST: f64 = 0.001;

/// Counters of reconciliations. The polls that they make have metrics of their own.
#[derive(Debug, Clone)]
pub(crate) struct ControllerMetrics {
    done: Family<OutcomeLabel, Counter>,
    seconds: Histogram,
    queue: Gauge,
    leader: Gauge,
    other_program: Gauge,
}

/// Label of a counter with its value.
type OutcomeLabel = [(&'static str, &'static str); 1];

impl ControllerMetrics {
    /// Adds the metrics to a registry.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            done: metric(
                registry,
                "controller_reconciles",
                "Reconciliations by outcome; an error of the API server or of the store is tried again",
            ),
            seconds: Histogram::new(exponential_buckets(SHORTEST, 4.0, 10)),
            queue: metric(
                registry,
                "controller_queue",
                "ClusterCatalogs that are being worked on, or wait for other polls to end",
            ),
            leader: metric(
                registry,
                "controller_leader",
                "1 if this replica works on the ClusterCatalogs",
            ),
            other_program: metric(
                registry,
                "controller_other_program",
                "1 while another program has the Lease, such as catalogd",
            ),
        };
        let help = "Time of one reconciliation, with its poll";
        registry.register(
            "controller_reconcile_seconds",
            help,
            metrics.seconds.clone(),
        );
        // Both usual outcomes have a series from the start, so that rates see the first error.
        for outcome in ["success", "error"] {
            drop(metrics.done.get_or_create(&[("outcome", outcome)]));
        }
        metrics
    }

    /// Sets the gauges of the role to 1 or 0.
    pub(crate) fn set_role(&self, role: &Role) {
        self.leader.set((*role == Role::Leader).into());
        self.other_program
            .set(matches!(role, Role::BesideOther(_)).into());
    }

    /// Begins the reconciliation of one object. It ends when the answer is dropped.
    pub(crate) fn begin(&self) -> Reconciliation<'_> {
        self.queue.inc();
        Reconciliation {
            metrics: self,
            began: Instant::now(),
            outcome: "aborted",
        }
    }
}

/// A reconciliation that has begun.
pub(crate) struct Reconciliation<'a> {
    metrics: &'a ControllerMetrics,
    began: Instant,
    outcome: &'static str,
}

impl Reconciliation<'_> {
    /// Ends with a result.
    pub(crate) fn end<T, E>(mut self, result: &Result<T, E>) {
        self.outcome = if result.is_ok() { "success" } else { "error" };
    }
}

// Also where the work is broken off, because the Lease was lost or the program stops.
impl Drop for Reconciliation<'_> {
    fn drop(&mut self) {
        self.metrics
            .done
            .get_or_create(&[("outcome", self.outcome)])
            .inc();
        self.metrics
            .seconds
            .observe(self.began.elapsed().as_secs_f64());
        self.metrics.queue.dec();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    }

    #[test]
    fn reconciliations_are_counted_by_outcome() {
        let mut registry = Registry::default();
        let metrics = ControllerMetrics::register(&mut registry);
        assert!(text(&registry).contains(r#"controller_reconciles_total{outcome="error"} 0"#));
        let waiting = metrics.begin();
        metrics.begin().end(&Ok::<_, ()>(()));
        metrics.begin().end(&Err::<(), _>(()));
        assert!(text(&registry).contains("controller_queue 1\n"));
        drop(waiting);
        let text = text(&registry);
        for line in [
            r#"controller_reconciles_total{outcome="success"} 1"#,
            r#"controller_reconciles_total{outcome="error"} 1"#,
            r#"controller_reconciles_total{outcome="aborted"} 1"#,
            "controller_reconcile_seconds_count 3",
            "controller_queue 0",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
