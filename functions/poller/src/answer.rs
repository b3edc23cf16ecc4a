//! Answer of the function to schedule and manual events.

use std::collections::BTreeMap;

use model::CatalogName;
use publish::Report;
use serde::Serialize;
use upkeep::Verification;

/// Answer to a schedule event, or to a manual event other than `gc`. Its JSON is a contract with the callers.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PollerAnswer {
    /// Report of each catalog that was polled or rolled back, in the form of `catalog-mirror poll --json`.
    pub reports: Vec<Report>,
    /// Number of reports by outcome, such as `published`.
    pub counts: BTreeMap<&'static str, usize>,
    /// Changed catalogs that were sent to the queue.
    pub queued: Vec<CatalogName>,
    /// Catalogs for which no time was left, or which the queue did not accept.
    pub left: Vec<CatalogName>,
    /// Catalogs whose interval is not over. Only for schedule events.
    pub not_due: Vec<CatalogName>,
    /// Results of the action `check`; left out of the JSON if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CatalogCheck>,
}

/// Result of the action `check` for one catalog, in the form of `catalog-mirror verify --json`.
#[derive(Debug, Serialize)]
pub struct CatalogCheck {
    /// Name of the catalog whose stored objects were checked.
    pub catalog: CatalogName,
    /// Number of checked objects, and the problems that were found.
    #[serde(flatten)]
    pub found: Verification,
}

impl PollerAnswer {
    /// Returns an answer with these reports and their counts. Everything else is empty.
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

    /// Returns true if at least one catalog was polled, every poll failed and nothing was queued.
    pub fn is_hopeless(&self) -> bool {
        let failed = |report: &Report| !report.outcome.is_success();
        !self.reports.is_empty() && self.reports.iter().all(failed) && self.queued.is_empty()
    }
}
