use std::{collections::HashMap, future::pending, sync::Arc, time::Duration};

use model::{CatalogName, Outcome};
use tokio::{sync::Notify, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{Catalog, Mirror, PollOptions, PollOrder, Report, jittered};

/// First wait after a poll that did not succeed. It doubles up to the catalog's interval.
const RETRY_FIRST: Duration = Duration::from_secs(15);
/// Longest wait after a failure of a catalog without an interval.
const RETRY_LONGEST: Duration = Duration::from_secs(600);

/// Polls every catalog for as long as the program runs. A composition is also polled when one of its inputs was published.
pub struct Schedule {
    mirror: Arc<Mirror>,
    catalogs: Vec<Catalog>,
    after: Arc<ReportHook>,
}

/// Called with each report. It must not block: the next poll of the catalog waits for it.
type ReportHook = dyn Fn(&Report) + Send + Sync;

impl Schedule {
    /// Polls each of `catalogs` at its own interval.
    pub fn new(mirror: Arc<Mirror>, catalogs: Vec<Catalog>) -> Self {
        Self {
            mirror,
            catalogs,
            after: Arc::new(|_| ()),
        }
    }

    /// Calls `after` with the report of every poll. It must not block.
    #[must_use]
    pub fn after_each(self, after: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        Self {
            after: Arc::new(after),
            ..self
        }
    }

    /// Runs until `stop`. A poll under way is then abandoned, which leaves the old state served.
    pub async fn run(self, stop: CancellationToken) {
        let mirror = self.mirror.clone();
        let order = Arc::new(PollOrder::new(&self.catalogs));
        let names = self.catalogs.iter().map(|catalog| catalog.name.clone());
        let wakes: Arc<Wakes> = Arc::new(names.map(|name| (name, Notify::new())).collect());
        let mut polls = JoinSet::new();
        for catalog in self.catalogs {
            let polling = Polling {
                mirror: self.mirror.clone(),
                catalog,
                after: self.after.clone(),
                order: order.clone(),
                wakes: wakes.clone(),
            };
            polls.spawn(stop.clone().run_until_cancelled_owned(polling.run()));
        }
        while polls.join_next().await.is_some() {}
        // An orderly end is no death of the process.
        mirror.withdraw_pulls().await;
    }
}

/// Signals that end the wait of a catalog before its interval is over.
type Wakes = HashMap<CatalogName, Notify>;

/// Polls of one catalog, one after the other.
struct Polling {
    mirror: Arc<Mirror>,
    catalog: Catalog,
    after: Arc<ReportHook>,
    order: Arc<PollOrder>,
    wakes: Arc<Wakes>,
}

impl Polling {
    async fn run(self) {
        let name = &self.catalog.name;
        self.order.wait(name).await;
        let mut failures = 0;
        loop {
            let report = self.mirror.poll(&self.catalog, PollOptions::default()).await;
            (self.after)(&report);
            self.order.end(name);
            if report.outcome == Outcome::Published {
                let followers = self.order.followers(name).filter_map(|name| self.wakes.get(name));
                followers.for_each(Notify::notify_one);
            }
            failures = if report.outcome.is_success() { 0 } else { failures + 1 };
            if !self.pause(wait(self.catalog.poll_interval(), failures)).await {
                return;
            }
        }
    }

    /// Waits for the next poll. Returns false if there is none.
    async fn pause(&self, wait: Option<Duration>) -> bool {
        let is_composed = self.catalog.source.composed().is_some();
        let woken = async {
            match self.wakes.get(&self.catalog.name).filter(|_| is_composed) {
                Some(wake) => wake.notified().await,
                None => pending().await,
            }
        };
        match wait {
            // Without jitter all catalogs, started together, would ask their registries in the same second for ever.
            Some(wait) => {
                tokio::select! {
                    () = tokio::time::sleep(jittered(wait)) => {}
                    () = woken => {}
                }
            }
            None if is_composed => woken.await,
            None => return false,
        }
        true
    }
}

/// Returns the wait after a poll; `None` if the catalog is not polled again.
fn wait(interval: Option<Duration>, failures: u32) -> Option<Duration> {
    if failures == 0 {
        return interval;
    }
    Some(backoff(failures, interval))
}

/// Returns the wait after so many failures in a row: 15 s, doubled with each failure, at most the catalog's interval, or ten
/// minutes without one.
pub fn backoff(failures: u32, interval: Option<Duration>) -> Duration {
    let wait = RETRY_FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    wait.min(interval.unwrap_or(RETRY_LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn wait_after_success_is_the_interval() {
        assert_eq!(wait(Some(HOUR), 0), Some(HOUR));
        assert_eq!(wait(None, 0), None);
    }

    #[test]
    fn wait_after_failures_doubles_up_to_the_interval() {
        let waits: Vec<u64> = (1..=9)
            .map(|failures| wait(Some(HOUR), failures).unwrap().as_secs())
            .collect();
        assert_eq!(waits, [15, 30, 60, 120, 240, 480, 960, 1920, 3600]);
        assert_eq!(wait(Some(Duration::from_secs(20)), 5), Some(Duration::from_secs(20)));
        assert_eq!(wait(None, 40), Some(RETRY_LONGEST));
    }
}
