//! Which catalogs are due, in which order, and how long each may take.

use std::time::{Duration, SystemTime};

use layout::{CatalogName, Key, Status};
use poll::{Catalog, backoff};
use store::{Store, StoreExt};
use telemetry::chain;

/// How long a pull takes of which nothing is known: ten times what the largest public catalogs need from S3's region.
const UNKNOWN_PULL: Duration = Duration::from_secs(30);

/// A schedule is never exact: what is due within this share of its interval is due now.
const EARLY: f64 = 0.1;

/// A catalog and what was known of it before this invocation.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) catalog: Catalog,
    pub(crate) before: Option<Status>,
}

impl Waiting {
    /// Reads what is known of a catalog. Without it the catalog is due, first and of unknown duration: that is safe.
    pub(crate) async fn read(store: &dyn Store, catalog: Catalog) -> Self {
        let before = store.read_document(&Key::Status(catalog.name.clone())).await;
        let before = before.unwrap_or_else(|error| {
            tracing::warn!(catalog = %catalog.name, error = chain(&error), "cannot read the status");
            None
        });
        Self {
            before: before.map(|(before, _)| before),
            catalog,
        }
    }

    pub(crate) fn name(&self) -> &CatalogName {
        &self.catalog.name
    }

    /// Whether its interval is over. A pinned digest costs no request to look at, and its configuration may have changed.
    pub(crate) fn is_due(&self, now: SystemTime) -> bool {
        let Some(before) = &self.before else {
            return true;
        };
        if self.catalog.source.pinned().is_some() || before.source != self.catalog.source.to_string() {
            return true;
        }
        let Some(wait) = self.wait(before) else {
            return false;
        };
        let next = before.last_poll + wait.mul_f64(1.0 - EARLY);
        // A status from the future was written by a clock that was wrong.
        now >= next || now < before.last_poll
    }

    fn wait(&self, before: &Status) -> Option<Duration> {
        let interval = self.catalog.poll_interval();
        if before.failures == 0 {
            return interval;
        }
        let failures = before.failures.try_into().unwrap_or(u32::MAX);
        Some(backoff(failures, interval.filter(|interval| !interval.is_zero())))
    }

    /// Who was not tried for longest goes first. Tried, not succeeded: one that fails each time must not keep the
    /// others waiting.
    pub(crate) fn order(&self) -> Option<SystemTime> {
        self.before.as_ref().map(|before| before.last_poll)
    }

    /// How long its pull may take.
    pub(crate) fn expected(&self) -> Duration {
        let known = self.before.as_ref().and_then(|before| before.pull_ms);
        known.map_or(UNKNOWN_PULL, Duration::from_millis)
    }

    /// How long ago it was last found up to date or brought up to date.
    pub(crate) fn success_age(&self, now: SystemTime) -> Option<Duration> {
        let last = self.before.as_ref()?.last_success?;
        Some(now.duration_since(last).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use layout::{Availability, Outcome};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const SOURCE: &str = "quay.io/a/b:latest";

    fn waiting(interval: Option<Duration>, failures: u64) -> Waiting {
        let last_poll = SystemTime::UNIX_EPOCH + MINUTE * 1000;
        let status = Status {
            source: SOURCE.into(),
            last_poll,
            outcome: Outcome::Unchanged,
            last_success: Some(last_poll),
            error: None,
            failures,
            duration_ms: 1,
            pull_ms: None,
            bytes_pulled: 0,
            bytes_published: 0,
        };
        let catalog = Catalog {
            name: "a".parse().unwrap(),
            source: SOURCE.parse().unwrap(),
            availability: Availability::Available,
            interval,
            policy: None,
            lookaside: None,
        };
        Waiting {
            catalog,
            before: Some(status),
        }
    }

    fn is_due(waiting: &Waiting, minutes: u32) -> bool {
        waiting.is_due(SystemTime::UNIX_EPOCH + MINUTE * (1000 + minutes))
    }

    #[test]
    fn an_interval_is_kept_up_to_a_tenth() {
        let hourly = waiting(Some(MINUTE * 60), 0);
        assert!(!is_due(&hourly, 53) && is_due(&hourly, 54));
        assert!(is_due(&waiting(Some(Duration::ZERO), 0), 0));
        assert!(
            !is_due(&waiting(None, 0), 100_000),
            "it has succeeded, and that was all it wanted"
        );
    }

    #[test]
    fn failures_wait_longer_and_longer() {
        assert!(!is_due(&waiting(Some(Duration::ZERO), 5), 3) && is_due(&waiting(Some(Duration::ZERO), 5), 4));
        assert!(!is_due(&waiting(None, 30), 8) && is_due(&waiting(None, 30), 9));
        assert!(is_due(&waiting(Some(MINUTE), 30), 1));
    }

    #[test]
    fn what_is_new_is_due() {
        let mut moved = waiting(None, 0);
        moved.catalog.source = "quay.io/a/c:latest".parse().unwrap();
        assert!(is_due(&moved, 0));
        moved.before = None;
        assert!(is_due(&moved, 0));
        let hourly = waiting(Some(MINUTE * 60), 0);
        assert!(hourly.is_due(SystemTime::UNIX_EPOCH), "a status from the future");
    }
}
