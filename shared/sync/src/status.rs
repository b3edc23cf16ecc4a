use std::time::SystemTime;

use layout::{Key, Status};
use store::{Condition, Store, StoreExt};
use telemetry::chain;

use crate::Report;

/// Writes `status.json`, as a poll does. Nothing depends on it, so a failure is logged and that is all.
pub(crate) async fn record(store: &dyn Store, source: &str, report: &Report) {
    let key = Key::Status(report.catalog.clone());
    let status = status(store, source, report, &key).await;
    if let Err(error) = store.write_document(&key, &status, Condition::Always).await {
        tracing::warn!(catalog = %report.catalog, error = chain(&error), "cannot write the status");
    }
}

/// Only a failure needs to know what was before it.
async fn status(store: &dyn Store, source: &str, report: &Report, key: &Key) -> Status {
    let now = SystemTime::now();
    let (last_success, failures) = if report.outcome.is_success() {
        (Some(now), 0)
    } else {
        let before = store.read_document::<Status>(key).await.ok().flatten();
        before.map_or((None, 1), |(before, _)| (before.last_success, before.failures + 1))
    };
    Status {
        source: source.to_owned(),
        last_poll: now,
        outcome: report.outcome,
        last_success,
        error: report.error_text(),
        failures,
        duration_ms: report.duration.as_millis().try_into().unwrap_or(u64::MAX),
        pull_ms: None,
        bytes_pulled: report.moved.bytes,
        bytes_published: report.moved.bytes + report.rebuilt.bytes,
    }
}
