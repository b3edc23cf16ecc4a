//! Garbage collection in three states: none, condemned, deleting.
//!
//! ```text
//!   none --condemn--> condemned --(2 h) mark again, delete--> deleting --(2 h)--> none
//! ```
//!
//! Each run takes the one step that is due. A collector holds no lock: two collectors do the same
//! work twice, and one that dies stops no one.

mod collector;
mod error;
mod marks;
mod options;
mod report;

use std::{sync::Arc, time::Duration};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use publish::metric;
use store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::collector::Collector;
pub use self::error::GcError;
pub use self::options::{GcOptions, Retention};
pub use self::report::{GcReport, GcStep, NextStep, UnreadableState};

/// Takes the one step of garbage collection that is due, or all of them if [`GcOptions::offline`]
/// is set.
///
/// # Errors
/// [`GcError`]; the next run tries again.
#[tracing::instrument(skip_all)]
pub async fn gc(store: &dyn Store, options: &GcOptions) -> Result<GcReport, GcError> {
    let collector = Collector { store, options };
    let report = match options.offline && !options.dry_run {
        // A dry run takes no step, so repeating it until nothing is left would never end.
        true => collector.run_offline().await?,
        false => collector.run().await?,
    };
    tracing::info!(
        step = ?report.step,
        state = report.state,
        age_seconds = report.age_seconds,
        objects_condemned = report.condemned.objects,
        objects_deleted = report.deleted.objects,
        objects_left = report.left.objects,
        "collected garbage"
    );
    Ok(report)
}

/// Wait before the first run. The first polls keep the machine busy.
const FIRST_WAIT: Duration = Duration::from_secs(600);

/// Time between two runs. Each takes the one step that is due; deletes must come within 30 minutes
/// of their marking, which the same run does.
const INTERVAL: Duration = Duration::from_secs(30 * 60);

/// Starts a task that collects garbage until `stop` is cancelled. A run that is cut off leaves
/// nothing to clean up: the next one, in any process, continues.
pub fn collect_regularly(
    store: Arc<dyn Store>,
    retention: Retention,
    metrics: GcMetrics,
    stop: CancellationToken,
) -> JoinHandle<()> {
    let options = GcOptions {
        retention,
        ..GcOptions::default()
    };
    let collecting = async move {
        // Jittered: mirrors that were started together must not list one bucket together.
        tokio::time::sleep(options.env.jittered(FIRST_WAIT)).await;
        loop {
            let collected = gc(&*store, &options).await;
            metrics.count(&collected);
            if let Err(error) = collected {
                tracing::error!(error = %model::text::Chain(&error), "cannot collect garbage");
            }
            tokio::time::sleep(options.env.jittered(INTERVAL)).await;
        }
    };
    let collecting = async move {
        stop.run_until_cancelled(collecting).await;
    };
    tokio::spawn(collecting.instrument(tracing::info_span!("gc")))
}

/// Metrics of garbage collection.
#[derive(Debug, Clone, Default)]
pub struct GcMetrics {
    runs: Counter,
    failures: Counter,
    unreadable: Family<[(&'static str, String); 1], Gauge>,
}

impl GcMetrics {
    /// Adds the metrics to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let unreadable = "Pointers and snapshots of a catalog that the last run of garbage collection could not read";
        Self {
            runs: metric(registry, "collections", "Runs of garbage collection"),
            failures: metric(
                registry,
                "collections_failed",
                "Runs of garbage collection that failed",
            ),
            unreadable: metric(registry, "collection_unreadable", unreadable),
        }
    }

    /// Counts one run.
    pub fn count(&self, result: &Result<GcReport, GcError>) {
        self.runs.inc();
        // A catalog that was repaired must not stay in the metric.
        self.unreadable.clear();
        let unreadable = match result {
            Ok(report) => &report.unreadable[..],
            Err(error) => {
                self.failures.inc();
                error.unreadable()
            }
        };
        for state in unreadable {
            let label = [("catalog", state.catalog.to_string())];
            self.unreadable.get_or_create(&label).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn repaired_catalog_leaves_the_metric() {
        let mut registry = Registry::default();
        let metrics = GcMetrics::register(&mut registry);
        let text = || {
            let mut page = String::new();
            text::encode(&mut page, &registry).unwrap();
            page
        };
        let state = UnreadableState {
            catalog: "a".parse().unwrap(),
            key: "catalogs/a/current.json".to_owned(),
            error: "damaged".to_owned(),
        };
        metrics.count(&Err(GcError::Unreadable(vec![state])));
        assert!(
            text().contains("collection_unreadable{catalog=\"a\"} 1"),
            "{}",
            text()
        );
        metrics.count(&Ok(GcReport::default()));
        assert!(!text().contains("catalog="), "{}", text());
        assert!(text().contains("collections_failed_total 1"), "{}", text());
    }
}
