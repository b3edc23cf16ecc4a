//! Checks and pulls catalogs concurrently, within the time of the invocation: which of them are
//! due, in which order, and the time that each of them gets.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, future::join_all, stream};
use model::text::Chain;
use model::{CatalogName, Key, Outcome, Status};
use publish::{
    Catalog, LastPoll, Mirror, PollOptions, PollOrder, PollTimes, Report, UpdateCheck, due,
};
use store::{Store, StoreExt};
use tokio::time::timeout;

use crate::site::Site;
use crate::{Deadline, Environment};

/// Time that must be left to start a check for an update. A check is one small request to the
/// registry and two to S3, and usually takes 0.1 s.
const CHECK_MIN: Duration = Duration::from_secs(1);

/// Sources that a round pulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullMode {
    /// Sources whose digest is not published yet.
    IfChanged,
    /// All, and a publication may lack packages of the one before it.
    Forced,
}

/// Catalogs of a round, by result.
#[derive(Debug, Default)]
pub(crate) struct RoundResult<'a> {
    pub(crate) reports: Vec<Report>,
    /// Catalogs that have to be pulled, with the digest that the check found.
    pub(crate) changed: Vec<(&'a Candidate, String)>,
    /// Catalogs that were not started for lack of time, or whose check was cut off.
    pub(crate) left: Vec<&'a Candidate>,
}

/// Checks and pulls of one invocation, within its time.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) site: &'a Site,
    pub(crate) deadline: Deadline,
}

impl<'a> Round<'a> {
    /// Checks each catalog for an update. Ends the poll of those that need no pull.
    pub(crate) async fn check_for_updates(
        self,
        mut candidates: Vec<&'a Candidate>,
    ) -> RoundResult<'a> {
        candidates.sort_by_key(|candidate| candidate.last_poll());
        let checks = candidates
            .into_iter()
            .map(|candidate| self.check_one(candidate));
        let mut result = RoundResult::default();
        for (candidate, check) in side_by_side(checks.collect(), self.environment.resolves).await {
            match check {
                Some(UpdateCheck::Done(report)) => result.reports.push(*report),
                Some(UpdateCheck::Available(digest)) => result.changed.push((candidate, digest)),
                None => result.left.push(candidate),
            }
        }
        result
    }

    async fn check_one(self, candidate: &'a Candidate) -> (&'a Candidate, Option<UpdateCheck>) {
        let Some(time) = self.deadline.time_for(CHECK_MIN) else {
            return (candidate, None);
        };
        let mirror = &self.site.mirror;
        let check = mirror.check_for_update(&candidate.catalog, candidate.status.clone());
        // A check that is cut off writes no status, so the catalog counts as not tried and goes
        // first the next time.
        (candidate, timeout(time, check).await.ok())
    }

    /// Polls each catalog for which enough time is left.
    pub(crate) async fn pull(
        self,
        mut candidates: Vec<&'a Candidate>,
        mode: PullMode,
    ) -> RoundResult<'a> {
        candidates.sort_by_key(|candidate| candidate.last_poll());
        // Before the first commit: from here on the receivers miss no publication, even if the
        // process ends right after one.
        let names: Vec<_> = candidates
            .iter()
            .map(|candidate| candidate.name().clone())
            .collect();
        self.site.notifier.register_receivers(&names).await;
        let polls = candidates
            .into_iter()
            .map(|candidate| self.pull_one(candidate, mode));
        let mut result = RoundResult::default();
        for (candidate, report) in
            side_by_side(polls.collect(), self.environment.side_by_side).await
        {
            match report {
                Some(report) => result.reports.push(report),
                None => result.left.push(candidate),
            }
        }
        result
    }

    async fn pull_one(
        self,
        candidate: &'a Candidate,
        mode: PullMode,
    ) -> (&'a Candidate, Option<Report>) {
        let Some(time) = self.deadline.time_for(candidate.pull_time()) else {
            return (candidate, None);
        };
        let options = PollOptions {
            force: mode == PullMode::Forced,
            // The check that queued this catalog may have seen missing objects, in another process.
            check_stored: true,
            // The mirror ends the poll itself, rather than a timeout here, so that the status
            // records the failure.
            time: Some(time),
            before: candidate.status.clone(),
            ..PollOptions::default()
        };
        let report = self.site.mirror.poll(&candidate.catalog, options).await;
        (candidate, Some(report))
    }

    /// Sends the publications to all receivers. Events that are not delivered in time are sent
    /// after the next poll.
    pub(crate) async fn notify(self, reports: &[Report]) {
        let sends: Vec<_> = reports
            .iter()
            .map(|report| self.site.notifier.after(report))
            .collect();
        let sent = timeout(self.deadline.left(), join_all(sends)).await;
        if sent.is_err() {
            tracing::warn!("some notifications were not delivered in time");
        }
    }
}

/// Does work, at most `most` at a time. The results are in the order in which they end: one that
/// hangs must not hold back the others.
pub(crate) async fn side_by_side<T>(work: Vec<impl Future<Output = T>>, most: usize) -> Vec<T> {
    stream::iter(work).buffer_unordered(most).collect().await
}

/// Time that must be left to start the first pull of a catalog. It is ten times what the largest
/// public catalogs need from S3's region.
const FIRST_PULL: Duration = Duration::from_secs(30);

/// Configured catalog that an event may poll, with its status from before the event.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) catalog: Catalog,
    /// `None` if the catalog was never polled, or if the status cannot be read.
    pub(crate) status: Option<Status>,
    /// Times of its last polls by this instance of the function. The status may have times that are
    /// an hour older.
    times: Option<PollTimes>,
}

impl Candidate {
    /// Reads the status of a catalog. A status that cannot be read is logged and treated as
    /// missing.
    pub(crate) async fn read(store: &dyn Store, mirror: &Mirror, catalog: Catalog) -> Self {
        let key = Key::Status(catalog.name.clone());
        let status = match store.read_document(&key).await {
            Ok(found) => found.map(|(status, _)| status),
            Err(error) => {
                // Only the saving of work depends on the status. Without it the catalog is polled,
                // and polled first.
                tracing::warn!(catalog = %catalog.name, error = %Chain(&error), "cannot read the status");
                None
            }
        };
        Self {
            status,
            times: mirror.poll_times(&catalog.name),
            catalog,
        }
    }

    pub(crate) fn name(&self) -> &CatalogName {
        &self.catalog.name
    }

    /// Returns true if the interval since the last poll is over, or if the status says nothing
    /// about the configured source.
    pub(crate) fn is_due(&self, now: SystemTime) -> bool {
        let Some(status) = &self.status else {
            return true;
        };
        // A pinned digest is resolved without a request, and its other configuration may have
        // changed.
        if self.catalog.source.pinned().is_some()
            || status.source != self.catalog.source.to_string()
        {
            return true;
        }
        if status.is_first_poll() {
            // Its process died, so no poll says when the next is due.
            return true;
        }
        let last = LastPoll {
            ended: self.last_poll().unwrap_or(status.last_poll),
            failures: status.failures.try_into().unwrap_or(u32::MAX),
            next_at: status.next_at,
            early: 1.0,
        };
        due(self.catalog.poll_interval(), &last, now).is_some_and(|wait| wait.is_zero())
    }

    /// Returns the time of the last poll, by which candidates are sorted; `None`, the smallest, if
    /// there was none.
    pub(crate) fn last_poll(&self) -> Option<SystemTime> {
        // The last attempt and not the last success: a catalog that always fails would take the
        // time of all others.
        let known = self.times.map(|times| times.last_poll);
        self.status
            .as_ref()
            .map(|status| status.last_poll)
            .max(known)
    }

    /// Returns the time that must be left to start a pull: the duration of the last one, or
    /// [`FIRST_PULL`].
    pub(crate) fn pull_time(&self) -> Duration {
        match self.status.as_ref().and_then(|status| status.pull_ms) {
            Some(milliseconds) => Duration::from_millis(milliseconds),
            None => FIRST_PULL,
        }
    }

    /// Returns the time since the last successful poll, changed or not; `None` if there was none.
    pub(crate) fn success_age(&self, now: SystemTime) -> Option<Duration> {
        let known = self.times.and_then(|times| times.last_success);
        let stored = self.status.as_ref().and_then(|status| status.last_success);
        let last = stored.max(known)?;
        Some(now.duration_since(last).unwrap_or_default())
    }
}

/// Takes out those that are compositions of what was published, or follow it as rings.
pub(crate) fn take_followers<'a>(
    not_due: &mut Vec<&'a Candidate>,
    order: &PollOrder,
    reports: &[Report],
) -> Vec<&'a Candidate> {
    let mut followers: BTreeSet<&CatalogName> = BTreeSet::new();
    for report in reports {
        if report.outcome == Outcome::Published {
            followers.extend(order.followers(&report.catalog));
        }
    }
    not_due
        .extract_if(.., |candidate| followers.contains(candidate.name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const SOURCE: &str = "quay.io/a/b:latest";

    fn candidate(interval: Option<Duration>, failures: u64) -> Candidate {
        let last_poll = SystemTime::UNIX_EPOCH + MINUTE * 1000;
        let status = Status {
            failures,
            ..Status::new(SOURCE.to_owned(), Outcome::Unchanged, last_poll)
        };
        let catalog = Catalog {
            interval,
            ..Catalog::new(
                "a".parse().unwrap(),
                SOURCE.parse::<source::Source>().unwrap(),
            )
        };
        Candidate {
            catalog,
            status: Some(status),
            times: None,
        }
    }

    fn is_due(candidate: &Candidate, minutes: u32) -> bool {
        candidate.is_due(SystemTime::UNIX_EPOCH + MINUTE * (1000 + minutes))
    }

    #[test]
    fn is_due_after_nine_tenths_of_the_interval_or_later_after_failures() {
        let always = Some(Duration::ZERO);
        let hourly = Some(MINUTE * 60);
        for (interval, failures, minutes, expected) in [
            (always, 0, 0, true),
            (hourly, 0, 53, false),
            (hourly, 0, 54, true),
            // Without an interval a success is the last poll.
            (None, 0, 100_000, false),
            (always, 5, 3, false),
            (always, 5, 4, true),
            (None, 30, 8, false),
            (None, 30, 9, true),
            (Some(MINUTE), 30, 1, true),
        ] {
            let is_due = is_due(&candidate(interval, failures), minutes);
            assert_eq!(is_due, expected, "{interval:?} {failures} {minutes}");
        }
    }

    #[test]
    fn times_of_this_instance_are_newer_than_the_status() {
        let mut hourly = candidate(Some(MINUTE * 60), 0);
        let polled = SystemTime::UNIX_EPOCH + MINUTE * 1054;
        hourly.times = Some(PollTimes {
            last_poll: polled,
            last_success: Some(polled),
        });
        assert!(!is_due(&hourly, 54) && !is_due(&hourly, 107) && is_due(&hourly, 108));
        assert_eq!(hourly.success_age(polled + MINUTE), Some(MINUTE));
        assert_eq!(hourly.last_poll(), Some(polled));
    }

    #[test]
    fn is_due_at_once_if_the_status_tells_nothing_about_the_source() {
        let mut first = candidate(None, 0);
        first.status.as_mut().unwrap().outcome = Outcome::Failed;
        assert!(is_due(&first, 0), "the process of the first poll died");
        let mut moved = candidate(None, 0);
        moved.catalog.source = "quay.io/a/c:latest"
            .parse::<source::Source>()
            .unwrap()
            .into();
        assert!(is_due(&moved, 0));
        moved.status = None;
        assert!(is_due(&moved, 0));
        let hourly = candidate(Some(MINUTE * 60), 0);
        assert!(
            hourly.is_due(SystemTime::UNIX_EPOCH),
            "a status from the future"
        );
    }
}
