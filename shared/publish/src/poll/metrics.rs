use std::{
    sync::{Arc, OnceLock},
    time::{SystemTime, UNIX_EPOCH},
};

use model::{CatalogName, Outcome, ValidationCounts};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use render::MemoryBudget;
use source::DownloadSpace;

use crate::{ObjectStats, PollError, Report};

/// Counters of the polls of all catalogs.
#[derive(Debug, Clone, Default)]
pub struct PollMetrics {
    polls: Family<PollLabels, Counter>,
    last_success: Family<CatalogLabels, Gauge>,
    bytes_pulled: Family<CatalogLabels, Counter>,
    bytes_published: Family<CatalogLabels, Counter>,
    objects_published: Family<CatalogLabels, Counter>,
    age: Family<CatalogLabels, Gauge>,
    failed_for_good: Family<CatalogLabels, Gauge>,
    limits: Family<LimitLabels, Counter>,
    findings: Family<FindingLabels, Gauge>,
    documents_taken: Gauge,
    documents_capacity: Gauge,
    downloads_taken: Gauge,
    downloads_capacity: Gauge,
    /// The budgets whose use is exported.
    budgets: Arc<OnceLock<(MemoryBudget, DownloadSpace)>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    catalog: String,
    limit: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FindingLabels {
    catalog: String,
    severity: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PollLabels {
    catalog: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CatalogLabels {
    catalog: String,
}

impl PollMetrics {
    /// Adds the counters to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let this = Self::default();
        registry.register("polls", "Polls by outcome", this.polls.clone());
        registry.register(
            "last_successful_poll_timestamp_seconds",
            "Time of the last poll that succeeded",
            this.last_success.clone(),
        );
        registry.register(
            "last_successful_poll_age_seconds",
            "Time since the last poll that succeeded, when the metrics were read",
            this.age.clone(),
        );
        registry.register(
            "pulled_bytes",
            "Bytes pulled from registries",
            this.bytes_pulled.clone(),
        );
        registry.register(
            "published_bytes",
            "Bytes written to the store",
            this.bytes_published.clone(),
        );
        registry.register(
            "published_objects",
            "Objects written to the store",
            this.objects_published.clone(),
        );
        registry.register(
            "limit_exceeded",
            "Polls that failed because the catalog exceeds a limit",
            this.limits.clone(),
        );
        registry.register(
            "validation_findings",
            "Findings of the validation of the published content",
            this.findings.clone(),
        );
        registry.register(
            "document_memory_taken_bytes",
            "Memory that the documents being parsed have taken, when the metrics were read",
            this.documents_taken.clone(),
        );
        registry.register(
            "document_memory_limit_bytes",
            "Memory that documents may take at a time: limits.memoryBytes",
            this.documents_capacity.clone(),
        );
        registry.register(
            "download_taken_bytes",
            "Disk space that copies of slow images have taken, when the metrics were read",
            this.downloads_taken.clone(),
        );
        registry.register(
            "download_limit_bytes",
            "Disk space that copies of slow images may take at a time: limits.downloadBytes",
            this.downloads_capacity.clone(),
        );
        registry.register(
            "failed_for_good",
            "1 if the source has a revision that failed and is not pulled again unless a poll is forced, else 0",
            this.failed_for_good.clone(),
        );
        this
    }

    pub(crate) fn set_budgets(&self, documents: &MemoryBudget, downloads: &DownloadSpace) {
        self.budgets.get_or_init(|| (documents.clone(), downloads.clone()));
    }

    pub(crate) fn count(&self, report: &Report) {
        let published = ObjectStats {
            objects: report.objects_published,
            bytes: report.bytes_published,
        };
        self.count_outcome(&report.catalog, report.outcome, report.bytes_pulled, published);
        for limit in report.error.iter().flat_map(PollError::limits) {
            let labels = LimitLabels {
                catalog: report.catalog.to_string(),
                limit,
            };
            self.limits.get_or_create(&labels).inc();
        }
        let catalog = CatalogLabels {
            catalog: report.catalog.to_string(),
        };
        self.failed_for_good
            .get_or_create(&catalog)
            .set(i64::from(report.failed_for_good()));
    }

    /// Counts a poll, or a copy in its place. `pulled` is in bytes.
    pub fn count_outcome(&self, name: &CatalogName, outcome: Outcome, pulled: u64, published: ObjectStats) {
        let catalog = CatalogLabels {
            catalog: name.to_string(),
        };
        for each in Outcome::ALL {
            // All outcomes exist from the first poll on, so that rates need no special cases.
            let labels = PollLabels {
                catalog: name.to_string(),
                outcome: each.as_str(),
            };
            self.polls.get_or_create(&labels).inc_by(u64::from(each == outcome));
        }
        self.bytes_pulled.get_or_create(&catalog).inc_by(pulled);
        self.bytes_published.get_or_create(&catalog).inc_by(published.bytes);
        self.objects_published.get_or_create(&catalog).inc_by(published.objects);
        self.failed_for_good.get_or_create(&catalog).set(0);
        if outcome.is_success() {
            self.last_success.get_or_create(&catalog).set(unix_seconds());
        }
    }

    /// Sets the numbers of findings of the published content; none for content that was not validated.
    pub(crate) fn set_findings(&self, catalog: &CatalogName, counts: Option<ValidationCounts>) {
        for (severity, of) in [
            ("error", (|counts| counts.errors) as fn(ValidationCounts) -> u64),
            ("warning", |counts| counts.warnings),
        ] {
            let labels = FindingLabels {
                catalog: catalog.to_string(),
                severity,
            };
            match counts {
                Some(counts) => {
                    let number = of(counts).try_into().unwrap_or(i64::MAX);
                    self.findings.get_or_create(&labels).set(number);
                }
                None => drop(self.findings.remove(&labels)),
            }
        }
    }

    /// Updates the ages, just before the metrics are read.
    pub fn refresh<'a>(&self, catalogs: impl IntoIterator<Item = &'a str>) {
        if let Some((documents, downloads)) = self.budgets.get() {
            let gauge = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            self.documents_taken.set(gauge(documents.taken() as u64));
            self.documents_capacity.set(gauge(documents.capacity() as u64));
            self.downloads_taken.set(gauge(downloads.taken()));
            self.downloads_capacity.set(gauge(downloads.capacity()));
        }
        let now = unix_seconds();
        for catalog in catalogs {
            let labels = CatalogLabels {
                catalog: catalog.to_owned(),
            };
            if let Some(last) = self.last_success.get(&labels).map(|last| last.get()) {
                self.age.get_or_create(&labels).set(now - last);
            }
        }
    }
}

fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().try_into().unwrap_or(i64::MAX)
}
