use std::time::{Duration, SystemTime};

use layout::{Key, Outcome, Status};
use store::{Condition, Store, StoreExt};
use telemetry::chain;

use crate::{Catalog, Mirror, PollError, Report};

/// Writes `status.json`. Nothing depends on it, so a failure is logged and that is all.
pub(crate) async fn record(mirror: &Mirror, catalog: &Catalog, before: Option<&Status>, report: &Report) {
    let (store, key) = (&*mirror.store, Key::Status(catalog.name.clone()));
    let now = (mirror.settings.surroundings.clock)();
    let status = match before {
        Some(before) => status(catalog, Some(before), report, now),
        None if report.outcome.is_success() => status(catalog, None, report, now),
        // Only a failure needs to know what was before it.
        None => status(catalog, read(store, &key).await.as_ref(), report, now),
    };
    if let Err(error) = store.write_document(&key, &status, Condition::Always).await {
        tracing::warn!(catalog = %catalog.name, error = chain(&error), "cannot write the status");
    }
}

/// One that cannot be read is as good as none.
async fn read(store: &dyn Store, key: &Key) -> Option<Status> {
    let before = store.read_document(key).await.ok().flatten();
    before.map(|(before, _)| before)
}

/// The last success and the time of a pull are those of before, where this poll has none.
fn status(catalog: &Catalog, before: Option<&Status>, report: &Report, now: SystemTime) -> Status {
    let (last_success, failures) = if report.outcome.is_success() {
        (Some(now), 0)
    } else {
        before.map_or((None, 1), |before| (before.last_success, before.failures + 1))
    };
    Status {
        source: catalog.source.to_string(),
        last_poll: now,
        outcome: report.outcome,
        last_success,
        error: report.error_text(),
        failures,
        duration_ms: milliseconds(report.duration),
        pull_ms: pull_ms(report).or(before.and_then(|before| before.pull_ms)),
        bytes_pulled: report.bytes_pulled,
        bytes_published: report.bytes_published,
    }
}

/// A pull that failed says nothing of how long one takes, unless time is what it ran out of.
fn pull_ms(report: &Report) -> Option<u64> {
    let told = match report.outcome {
        Outcome::Failed => matches!(report.error, Some(PollError::OutOfTime(_))),
        _ => report.bytes_pulled > 0,
    };
    told.then(|| milliseconds(report.duration))
}

fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
