use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use model::{CatalogName, Outcome, ValidationCounts};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};
use source::{DownloadSpace, PullProgress};
use work::MemoryPool;

use crate::{PollError, Report};

/// Name and value of a label.
type Label = (&'static str, String);

/// Metric of each catalog.
type ByCatalog<M> = Family<[Label; 1], M>;

/// Metric of each catalog and of another label.
type ByCatalogAnd<M> = Family<[Label; 2], M>;

/// Counters of the polls of all catalogs.
#[derive(Debug, Clone, Default)]
pub struct PollMetrics {
    polls: ByCatalogAnd<Counter>,
    last_success: ByCatalog<Gauge>,
    bytes_pulled: ByCatalog<Counter>,
    bytes_published: ByCatalog<Counter>,
    objects_published: ByCatalog<Counter>,
    age: ByCatalog<Gauge>,
    failed_for_good: ByCatalog<Gauge>,
    held: ByCatalog<Gauge>,
    ring_state: ByCatalog<Gauge>,
    ring_waiting: ByCatalog<Gauge>,
    limits: ByCatalogAnd<Counter>,
    findings: ByCatalogAnd<Gauge>,
    documents_taken: Gauge,
    documents_capacity: Gauge,
    downloads_taken: Gauge,
    downloads_capacity: Gauge,
    /// The budgets whose use is exported.
    pub(crate) budgets: Arc<OnceLock<(MemoryPool, DownloadSpace)>>,
}

impl PollMetrics {
    /// Adds the counters to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        // Help texts that are too long for the lines below.
        let last_success = "Time of the last poll that succeeded";
        let age = "Time since the last poll that succeeded, when the metrics were read";
        let limits = "Polls that failed because the catalog exceeds a limit";
        let findings = "Findings of the validation of the published content";
        let documents_taken =
            "Memory that the documents being parsed have taken, when the metrics were read";
        let documents_capacity = "Memory that documents may take at a time: limits.memoryBytes";
        let downloads_taken =
            "Disk space that copies of slow images have taken, when the metrics were read";
        let downloads_capacity =
            "Disk space that copies of slow images may take at a time: limits.downloadBytes";
        let failed_for_good = "1 if the source has a revision that failed and is not pulled again unless a poll is forced, else 0";
        let held = "1 if new content of the source looks like an accident and is held back, else 0";
        let ring_state =
            "Time at which the state of a ring was published in the catalog that it follows";
        let ring_waiting = "States that wait until they are old enough for a ring, or for a person";
        Self {
            polls: metric(registry, "polls", "Polls by outcome"),
            last_success: metric(
                registry,
                "last_successful_poll_timestamp_seconds",
                last_success,
            ),
            age: metric(registry, "last_successful_poll_age_seconds", age),
            bytes_pulled: metric(registry, "pulled_bytes", "Bytes pulled from registries"),
            bytes_published: metric(registry, "published_bytes", "Bytes written to the store"),
            objects_published: metric(
                registry,
                "published_objects",
                "Objects written to the store",
            ),
            limits: metric(registry, "limit_exceeded", limits),
            findings: metric(registry, "validation_findings", findings),
            documents_taken: metric(registry, "document_memory_taken_bytes", documents_taken),
            documents_capacity: metric(registry, "document_memory_limit_bytes", documents_capacity),
            downloads_taken: metric(registry, "download_taken_bytes", downloads_taken),
            downloads_capacity: metric(registry, "download_limit_bytes", downloads_capacity),
            failed_for_good: metric(registry, "failed_for_good", failed_for_good),
            held: metric(registry, "held", held),
            ring_state: metric(registry, "ring_state_timestamp_seconds", ring_state),
            ring_waiting: metric(registry, "ring_waiting_states", ring_waiting),
            budgets: Arc::default(),
        }
    }

    pub(crate) fn count(&self, report: &Report) {
        let name = report.catalog.as_str();
        for &outcome in Outcome::ALL {
            // All outcomes exist from the first poll on, so that rates need no special cases.
            let counter = self
                .polls
                .get_or_create(&labels(name, "outcome", outcome.as_str()));
            counter.inc_by(u64::from(outcome == report.outcome));
        }
        for limit in report.error.iter().flat_map(PollError::limits) {
            self.limits
                .get_or_create(&labels(name, "limit", limit))
                .inc();
        }
        let label = catalog(name);
        self.bytes_pulled
            .get_or_create(&label)
            .inc_by(report.bytes_pulled);
        let bytes_published = self.bytes_published.get_or_create(&label);
        bytes_published.inc_by(report.bytes_published);
        let objects_published = self.objects_published.get_or_create(&label);
        objects_published.inc_by(report.objects_published);
        let failed_for_good = self.failed_for_good.get_or_create(&label);
        failed_for_good.set(i64::from(report.failed_for_good()));
        let is_held = report.error.as_ref().and_then(PollError::hold).is_some();
        self.held.get_or_create(&label).set(i64::from(is_held));
        if let Some(ring) = &report.ring {
            let waiting = gauge(ring.waiting.len() as u64);
            self.ring_waiting.get_or_create(&label).set(waiting);
            if let Some(at) = &ring.at {
                let published = seconds_of(at.published_at);
                self.ring_state.get_or_create(&label).set(published);
            }
        }
        if report.outcome.is_success() {
            self.last_success.get_or_create(&label).set(unix_seconds());
        }
    }

    /// Sets the numbers of findings of the published content; none for content that was not
    /// validated.
    pub(crate) fn set_findings(&self, catalog: &CatalogName, counts: Option<ValidationCounts>) {
        let errors = counts.map(|counts| counts.errors);
        let warnings = counts.map(|counts| counts.warnings);
        for (severity, number) in [("error", errors), ("warning", warnings)] {
            let labels = labels(catalog.as_str(), "severity", severity);
            match number {
                Some(number) => {
                    self.findings.get_or_create(&labels).set(gauge(number));
                }
                None => drop(self.findings.remove(&labels)),
            }
        }
    }

    /// Updates the ages, just before the metrics are read.
    pub fn refresh<'a>(&self, catalogs: impl IntoIterator<Item = &'a str>) {
        if let Some((documents, downloads)) = self.budgets.get() {
            self.documents_taken.set(gauge(documents.taken() as u64));
            self.documents_capacity
                .set(gauge(documents.capacity() as u64));
            self.downloads_taken.set(gauge(downloads.taken()));
            self.downloads_capacity.set(gauge(downloads.capacity()));
        }
        let now = unix_seconds();
        for label in catalogs.into_iter().map(catalog) {
            if let Some(last) = self.last_success.get(&label).map(|last| last.get()) {
                self.age.get_or_create(&label).set(now - last);
            }
        }
    }
}

/// Creates a metric and adds it to a registry.
pub fn metric<M: Metric + Clone + Default>(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

fn catalog(name: &str) -> [Label; 1] {
    [("catalog", name.to_owned())]
}

fn labels(catalog: &str, other: &'static str, value: &str) -> [Label; 2] {
    [("catalog", catalog.to_owned()), (other, value.to_owned())]
}

fn gauge(number: u64) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn unix_seconds() -> i64 {
    seconds_of(SystemTime::now())
}

fn seconds_of(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    gauge(since.as_secs())
}

/// Progress of the polls of a [`crate::Mirror`], for a display.
#[derive(Debug, Default)]
pub struct PollProgress {
    /// Number of polls that were started.
    pub catalogs: AtomicU64,
    /// Number of polls that have ended, failed ones included.
    pub done: AtomicU64,
    /// Number of FBC files that were read.
    pub files: AtomicU64,
    /// Total size of these files, in bytes.
    pub bytes: AtomicU64,
    /// Layers of images that are pulled.
    pub pull: Arc<PullProgress>,
    /// Number of objects of new content that have to be put.
    pub objects: AtomicU64,
    /// Number of these that were put.
    pub put: AtomicU64,
    /// Number of polls in each phase.
    phases: [AtomicU64; 3],
}

/// Phase of a poll that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollPhase {
    /// The source is asked for its revision.
    Asking,
    /// The content is pulled or composed, and rendered.
    Reading,
    /// The new content is judged and put.
    Storing,
}

impl PollProgress {
    /// Returns the number of polls in a phase.
    pub fn in_phase(&self, phase: PollPhase) -> u64 {
        self.phases[phase as usize].load(Ordering::Relaxed)
    }

    /// Counts a poll in a phase until the result is dropped.
    pub(super) fn enter(&self, phase: PollPhase) -> InPhase<'_> {
        let count = &self.phases[phase as usize];
        count.fetch_add(1, Ordering::Relaxed);
        InPhase(count)
    }
}

/// A poll in a phase. It leaves the phase when this is dropped.
pub(super) struct InPhase<'a>(&'a AtomicU64);

impl Drop for InPhase<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
