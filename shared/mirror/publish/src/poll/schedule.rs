use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use model::{CatalogName, Outcome};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{Catalog, Mirror, PollOptions, PollOrder, Report};

/// First wait after a poll that did not succeed. It doubles up to the catalog's interval.
const RETRY_FIRST: Duration = Duration::from_secs(15);

/// Longest wait after a failure of a catalog without an interval.
const RETRY_LONGEST: Duration = Duration::from_secs(600);

/// Largest share of a wait by which a poll may come early.
const EARLY_MAX: f64 = 0.1;

/// Last poll of a catalog, as far as the time of the next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastPoll {
    /// Time at which it ended.
    pub ended: SystemTime,
    /// Number of failures in a row, this poll included.
    pub failures: u32,
    /// Time at which the next state of a ring is old enough.
    pub next_at: Option<SystemTime>,
    /// Part, from 0 to 1, of the tenth of its wait by which the next poll comes early. Random in a
    /// process that goes on, so that catalogs that were started together are soon polled at
    /// different times. 1 where events bring the polls: one that comes a second too early would
    /// postpone the poll by a whole period.
    pub early: f64,
}

/// Returns the time from `now` to the next poll of a catalog with this interval: zero if it is due,
/// `None` if it is not polled again. After failures it is 15 s, doubled with each further one, at
/// most the interval, or ten minutes without one. A ring is also due when its next state is old
/// enough; 15 s after this poll if that was so before it ended, because it may have looked before,
/// or the clock of the store is behind.
pub fn due(interval: Option<Duration>, last: &LastPoll, now: SystemTime) -> Option<Duration> {
    let next_at = match last.next_at {
        Some(next) if next > last.ended => Some(next),
        Some(_) if last.failures == 0 => last.ended.checked_add(RETRY_FIRST),
        _ => None,
    };
    let until_next = next_at.map(|next| next.duration_since(now).unwrap_or_default());
    let wait = match (last.failures, interval) {
        (0, None) => return until_next,
        (0, Some(interval)) => interval,
        (failures, _) => {
            let wait = RETRY_FIRST.saturating_mul(2_u32.saturating_pow(failures - 1));
            // An interval of zero, which polls at every event, does not try a failing source at
            // every event.
            let longest = interval.filter(|interval| !interval.is_zero());
            wait.min(longest.unwrap_or(RETRY_LONGEST))
        }
    };
    let wait = wait.mul_f64(1.0 - EARLY_MAX * last.early);
    // A poll in the future was dated by a wrong clock. Waiting for that time could take years.
    let age = now.duration_since(last.ended).unwrap_or(wait);
    let wait = wait.saturating_sub(age);
    Some(until_next.map_or(wait, |until_next| until_next.min(wait)))
}

/// Polls every catalog for as long as the program runs. A composition or a ring is also polled when
/// one of its inputs was published.
pub struct Schedule {
    mirror: Arc<Mirror>,
    catalogs: Vec<Catalog>,
    after: Box<ReportHook>,
    order: PollOrder,
    /// Signals that end the wait of a composition or a ring before its interval is over.
    wakes: HashMap<CatalogName, Notify>,
}

/// Called with each report. It must not block: the next poll of the catalog waits for it.
type ReportHook = dyn Fn(&Report) + Send + Sync;

impl Schedule {
    /// Polls each of `catalogs` at its own interval. Calls `after` with the report of every poll;
    /// it must not block.
    pub fn new(
        mirror: Arc<Mirror>,
        catalogs: Vec<Catalog>,
        after: impl Fn(&Report) + Send + Sync + 'static,
    ) -> Self {
        let followers = catalogs
            .iter()
            .filter(|catalog| catalog.source.inputs().next().is_some());
        Self {
            mirror,
            after: Box::new(after),
            order: PollOrder::new(&catalogs),
            wakes: followers
                .map(|catalog| (catalog.name.clone(), Notify::new()))
                .collect(),
            catalogs,
        }
    }

    /// Runs until `stop`. A poll under way is then abandoned, which leaves the old state served.
    pub async fn run(self, stop: CancellationToken) {
        let schedule = Arc::new(self);
        let mut polls = JoinSet::new();
        for at in 0..schedule.catalogs.len() {
            let polling = schedule.clone().poll_regularly(at);
            polls.spawn(stop.clone().run_until_cancelled_owned(polling));
        }
        while polls.join_next().await.is_some() {}
        // An orderly end is no death of the process.
        schedule.mirror.withdraw_pulls().await;
    }

    /// Polls the catalog at this place, again and again.
    async fn poll_regularly(self: Arc<Self>, at: usize) {
        let catalog = &self.catalogs[at];
        let name = &catalog.name;
        self.order.wait(name).await;
        let mut failures = 0;
        loop {
            let report = self.mirror.poll(catalog, PollOptions::default()).await;
            (self.after)(&report);
            self.order.end(name);
            if report.outcome == Outcome::Published {
                let followers = self
                    .order
                    .followers(name)
                    .filter_map(|name| self.wakes.get(name));
                followers.for_each(Notify::notify_one);
            }
            failures = if report.outcome.is_success() {
                0
            } else {
                failures + 1
            };
            let env = &self.mirror.settings.env;
            let last = LastPoll {
                ended: (env.clock)(),
                failures,
                next_at: report.next_at(),
                // Without jitter all catalogs, started together, would ask their registries in the
                // same second for ever.
                early: (env.rng)(),
            };
            let wake = self.wakes.get(name);
            let wait = due(catalog.poll_interval(), &last, last.ended);
            // A composition or a ring without an interval waits for its inputs alone.
            let Some(wait) = wait.or(wake.map(|_| Duration::MAX)) else {
                return;
            };
            match wake {
                Some(wake) => drop(timeout(wait, wake.notified()).await),
                None => sleep(wait).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn last(failures: u32) -> LastPoll {
        LastPoll {
            ended: SystemTime::UNIX_EPOCH + HOUR,
            failures,
            next_at: None,
            early: 0.0,
        }
    }

    fn wait(interval: Option<Duration>, failures: u32) -> Option<u64> {
        let last = last(failures);
        due(interval, &last, last.ended).map(|wait| wait.as_secs())
    }

    #[test]
    fn due_after_success_is_the_interval() {
        assert_eq!((wait(Some(HOUR), 0), wait(None, 0)), (Some(3600), None));
        assert_eq!(wait(Some(Duration::ZERO), 0), Some(0));
    }

    #[test]
    fn due_after_failures_doubles_up_to_the_interval() {
        let waits: Vec<u64> = (1..=9)
            .map(|failures| wait(Some(HOUR), failures).unwrap())
            .collect();
        assert_eq!(waits, [15, 30, 60, 120, 240, 480, 960, 1920, 3600]);
        assert_eq!(wait(Some(Duration::from_secs(20)), 5), Some(20));
        assert_eq!(wait(None, 40), Some(600));
        assert_eq!(wait(Some(Duration::ZERO), u32::MAX), Some(600));
    }

    #[test]
    fn ring_is_due_when_its_next_state_is_old_enough() {
        let wait = |interval: Option<Duration>, minutes: i64, failures: u32| {
            let last = last(failures);
            let minutes_of = |minutes: i64| Duration::from_secs(60 * minutes.unsigned_abs());
            let next_at = match minutes {
                0.. => last.ended + minutes_of(minutes),
                _ => last.ended - minutes_of(minutes),
            };
            let next_at = Some(next_at);
            let last = LastPoll { next_at, ..last };
            due(interval, &last, last.ended).map(|wait| wait.as_secs())
        };
        assert_eq!(wait(Some(HOUR), 20, 0), Some(20 * 60));
        assert_eq!(wait(Some(HOUR), 90, 0), Some(3600));
        assert_eq!(wait(None, 90, 0), Some(90 * 60));
        // The poll looked before that, and ended after it.
        assert_eq!(wait(Some(HOUR), 0, 0), Some(15));
        assert_eq!(wait(None, -5, 0), Some(15));
        assert_eq!(wait(Some(HOUR), 20, 1), Some(15));
        assert_eq!(wait(Some(HOUR), -5, 3), Some(60));
    }

    #[test]
    fn due_is_up_to_a_tenth_early_and_counts_from_the_last_poll() {
        let ended = last(0).ended;
        let after = |early: f64, minutes: u64| {
            let now = ended + Duration::from_secs(60 * minutes);
            due(Some(HOUR), &LastPoll { early, ..last(0) }, now)
                .unwrap()
                .as_secs()
                / 60
        };
        for (early, minutes, expected) in [(0.0, 0, 60), (1.0, 0, 54), (1.0, 53, 1), (1.0, 54, 0)] {
            assert_eq!(after(early, minutes), expected);
        }
        let by_a_wrong_clock = due(Some(HOUR), &last(0), SystemTime::UNIX_EPOCH);
        assert_eq!(by_a_wrong_clock, Some(Duration::ZERO));
    }
}
