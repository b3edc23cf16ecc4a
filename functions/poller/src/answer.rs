//! What the function answers to schedule and manual events.

use std::collections::BTreeMap;

use keep::Verification;
use layout::CatalogName;
use poll::Report;
use serde::Serialize;

/// What was done, and what was not.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// What became of each catalog that was polled or rolled back, as `catalog-mirror poll --json` prints it.
    pub reports: Vec<Report>,
    /// How many ended how.
    pub counts: BTreeMap<&'static str, usize>,
    /// What was handed to the queue.
    pub queued: Vec<CatalogName>,
    /// What there was no time for.
    pub left: Vec<CatalogName>,
    /// What was not due.
    pub not_due: Vec<CatalogName>,
    /// What checks found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

/// What was found in the store, as `catalog-mirror verify --json` prints it.
#[derive(Debug, Serialize)]
pub struct Check {
    /// The catalog.
    pub catalog: CatalogName,
    /// What was found.
    #[serde(flatten)]
    pub found: Verification,
}

impl Answer {
    /// An answer with these reports.
    pub fn of(reports: Vec<Report>) -> Self {
        let mut counts = BTreeMap::new();
        for report in &reports {
            *counts.entry(report.outcome.as_str()).or_default() += 1;
        }
        Self {
            reports,
            counts,
            ..Self::default()
        }
    }

    /// Whether something was tried and nothing came of it.
    pub fn is_hopeless(&self) -> bool {
        let failed = |report: &Report| !report.outcome.is_success();
        !self.reports.is_empty() && self.reports.iter().all(failed) && self.queued.is_empty()
    }
}
