//! Garbage collection in three states: none, condemned, deleting.
//!
//! ```text
//!   none --condemn--> condemned --(2 h) mark again, delete--> deleting --(2 h)--> none
//! ```
//!
//! Each run takes the one step that is due. A collector holds no lock: two collectors do the same
//! work twice, and one that dies stops no one.

mod collector;
mod marks;
mod report;

use std::{sync::Arc, time::Duration};

use model::PREVIOUS_MAX;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use publish::{Env, metric};
use store::{ReadError, Store, StoreError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::collector::Collector;
pub use self::report::{GcReport, GcStep, NextStep, UnreadableState};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Time for which deletes may be sent after `deleting` began. With 15 minutes for which a signature
/// of S3 lives, and 15 for a clock that is wrong, every delete has landed well before the state
/// ends.
const DELETING_MAX: Duration = Duration::from_secs(30 * 60);

/// Earlier publications that are kept besides what is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of earlier publications of a catalog. Default: all that `current.json`
    /// remembers, 16.
    pub generations: usize,
    /// Maximum time after an earlier publication was replaced. Default: 30 days.
    pub max_age: Duration,
    /// Time after its replacement for which an earlier publication is kept in any case. Default: 24
    /// h, for which shared caches may serve a stale `current.json` (`stale-if-error`).
    pub grace: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            generations: PREVIOUS_MAX,
            max_age: 30 * DAY,
            grace: DAY,
        }
    }
}

impl Retention {
    /// Replaces the values that are given. `days` are those of [`Retention::max_age`].
    #[must_use]
    pub fn with(
        self,
        generations: Option<usize>,
        days: Option<u64>,
        grace: Option<Duration>,
    ) -> Self {
        let max_age = match days {
            Some(days) => Duration::from_secs(days.saturating_mul(DAY.as_secs())),
            None => self.max_age,
        };
        Self {
            generations: generations.unwrap_or(self.generations),
            max_age,
            grace: grace.unwrap_or(self.grace),
        }
    }
}

/// Options of one run of garbage collection.
#[derive(Debug, Clone, Default)]
pub struct GcOptions {
    /// Earlier publications whose objects are kept. Default: those of the last 30 days, at most 16
    /// of each catalog.
    pub retention: Retention,
    /// Takes all steps at once, without the waits. Safe only while no other process reads or writes
    /// the store. Default: false.
    pub offline: bool,
    /// Writes nothing, and reports what would be condemned. Default: false.
    pub dry_run: bool,
    /// Maximum duration of the deletes. What is left is deleted by the next run within the 30
    /// minutes, or condemned again. Default: none.
    pub time: Option<Duration>,
    /// Clocks and randomness. Default: the system's.
    pub env: Env,
}

/// Failure of garbage collection. Nothing was condemned then that a catalog names.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// Pointers or published Snapshots cannot be read, so it is not known what they name. Any
    /// object may be one of theirs: an object does not tell its catalog, and catalogs share
    /// objects. So nothing can be condemned.
    #[error(
        "nothing is collected, because it is unknown which objects these need: {}. `verify --repair-from MIRROR NAME` fetches what is \
         damaged from a copy, `poll --force NAME` makes it again from the source, `rm NAME` removes a catalog that is not wanted",
        list(.0)
    )]
    Unreadable(Vec<UnreadableState>),
    /// A document of the store cannot be read.
    #[error("cannot read the state of garbage collection")]
    Read(#[from] ReadError),
    /// The store cannot be listed or written.
    #[error("cannot collect garbage")]
    Store(#[from] StoreError),
    /// The list of condemned objects cannot be compressed.
    #[error("cannot compress the list of condemned objects")]
    Compress(#[source] std::io::Error),
}

fn list(states: &[UnreadableState]) -> String {
    let mut texts = Vec::new();
    for state in states {
        texts.push(format!("{} ({})", state.catalog, state.error));
    }
    texts.join("; ")
}

impl GcError {
    /// Returns the pointers and Snapshots that have to be repaired.
    pub fn unreadable(&self) -> &[UnreadableState] {
        match self {
            Self::Unreadable(states) => states,
            _ => &[],
        }
    }
}

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
