use std::time::{SystemTime, UNIX_EPOCH};

use layout::Outcome;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::Report;

/// Counters of the polls of all catalogs.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    polls: Family<PollLabels, Counter>,
    last_success: Family<CatalogLabels, Gauge>,
    bytes_pulled: Family<CatalogLabels, Counter>,
    bytes_published: Family<CatalogLabels, Counter>,
    objects_published: Family<CatalogLabels, Counter>,
    age: Family<CatalogLabels, Gauge>,
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

impl Metrics {
    /// Adds the counters to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let this = Self::default();
        registry.register("polls", "Polls by how they ended", this.polls.clone());
        registry.register(
            "last_successful_poll_timestamp_seconds",
            "When a poll last found the catalog up to date or brought it up to date",
            this.last_success.clone(),
        );
        registry.register(
            "last_successful_poll_age_seconds",
            "How long that was ago when the metrics were read",
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
        this
    }

    pub(crate) fn count(&self, report: &Report) {
        let catalog = CatalogLabels {
            catalog: report.catalog.to_string(),
        };
        let labels = |outcome: Outcome| PollLabels {
            catalog: report.catalog.to_string(),
            outcome: outcome.as_str(),
        };
        for outcome in Outcome::ALL {
            // All outcomes exist from the first poll on, so that rates need no special cases.
            self.polls
                .get_or_create(&labels(outcome))
                .inc_by(u64::from(outcome == report.outcome));
        }
        self.bytes_pulled.get_or_create(&catalog).inc_by(report.bytes_pulled);
        self.bytes_published
            .get_or_create(&catalog)
            .inc_by(report.bytes_published);
        self.objects_published
            .get_or_create(&catalog)
            .inc_by(report.objects_published);
        if report.outcome.is_success() {
            self.last_success.get_or_create(&catalog).set(unix_seconds());
        }
    }

    /// Brings the ages up to date, just before the metrics are read.
    pub fn refresh<'a>(&self, catalogs: impl IntoIterator<Item = &'a str>) {
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
