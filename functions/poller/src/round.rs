//! Checks and pulls catalogs concurrently, within the time of the invocation.

use std::time::Duration;

use futures_util::{StreamExt, future::join_all, stream};
use publish::{PollOptions, Report, UpdateCheck};
use tokio::time::timeout;

use crate::{CatalogMessage, Deadline, candidate::Candidate, site::Site};

/// Time that must be left to start a check for an update. A check is one small request to the registry and two to S3, and
/// usually takes 0.1 s.
const CHECK_MIN: Duration = Duration::from_secs(1);

/// Settings of the checks and pulls of one invocation.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    pub(crate) site: &'a Site,
    pub(crate) deadline: Deadline,
    /// Maximum number of catalogs that are checked at a time.
    pub(crate) checks: usize,
    /// Maximum number of catalogs that are pulled at a time.
    pub(crate) pulls: usize,
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

impl<'a> Round<'a> {
    /// Checks each catalog for an update. Ends the poll of those that need no pull.
    pub(crate) async fn check(self, mut candidates: Vec<&'a Candidate>) -> RoundResult<'a> {
        candidates.sort_by_key(|candidate| candidate.last_poll());
        let checks: Vec<_> = candidates
            .into_iter()
            .map(|candidate| self.check_one(candidate))
            .collect();
        let checked: Vec<_> = stream::iter(checks).buffer_unordered(self.checks).collect().await;
        let mut result = RoundResult::default();
        for (candidate, check) in checked {
            match check {
                Some(UpdateCheck::Done(report)) => result.reports.push(*report),
                Some(UpdateCheck::Available { digest }) => result.changed.push((candidate, digest)),
                None => result.left.push(candidate),
            }
        }
        result
    }

    async fn check_one(self, candidate: &'a Candidate) -> (&'a Candidate, Option<UpdateCheck>) {
        let Some(time) = self.deadline.time_for(CHECK_MIN) else {
            return (candidate, None);
        };
        let check = self
            .site
            .mirror
            .check_for_update(&candidate.catalog, candidate.status.as_ref());
        // A check that is cut off writes no status, so the catalog counts as not tried and goes first the next time.
        (candidate, timeout(time, check).await.ok())
    }

    /// Polls each catalog for which enough time is left. `force` pulls although the digest is known.
    pub(crate) async fn pull(self, mut candidates: Vec<&'a Candidate>, force: bool) -> RoundResult<'a> {
        candidates.sort_by_key(|candidate| candidate.last_poll());
        // Before the first commit: from here on the receivers miss no publication, even if the process ends right after one.
        let names: Vec<_> = candidates.iter().map(|candidate| candidate.name().clone()).collect();
        self.site.notifier.register_receivers(&names).await;
        let polls: Vec<_> = candidates
            .into_iter()
            .map(|candidate| self.poll(candidate, force))
            .collect();
        let polled: Vec<_> = stream::iter(polls).buffer_unordered(self.pulls).collect().await;
        let mut result = RoundResult::default();
        for (candidate, report) in polled {
            match report {
                Some(report) => result.reports.push(report),
                None => result.left.push(candidate),
            }
        }
        result
    }

    async fn poll(self, candidate: &'a Candidate, force: bool) -> (&'a Candidate, Option<Report>) {
        let Some(time) = self.deadline.time_for(candidate.pull_time()) else {
            return (candidate, None);
        };
        let options = PollOptions {
            force,
            // The check that queued this catalog may have seen missing objects, in another process.
            check_stored: true,
            // The mirror ends the poll itself, rather than a timeout here, so that the status records the failure.
            time: Some(time),
            before: candidate.status.as_ref(),
            ..PollOptions::default()
        };
        (
            candidate,
            Some(self.site.mirror.poll(&candidate.catalog, options).await),
        )
    }

    /// Sends the publications to all receivers. Events that are not delivered in time are sent after the next poll.
    pub(crate) async fn notify(self, reports: &[Report]) {
        let sends: Vec<_> = reports.iter().map(|report| self.site.notifier.after(report)).collect();
        if timeout(self.deadline.left(), join_all(sends)).await.is_err() {
            tracing::warn!("some notifications were not delivered in time");
        }
    }
}

impl RoundResult<'_> {
    /// Returns the messages that let other invocations pull the changed catalogs.
    pub(crate) fn messages(&self) -> Vec<CatalogMessage> {
        let message = |(candidate, digest): &(&Candidate, String)| CatalogMessage {
            catalog: candidate.name().clone(),
            digest: digest.clone(),
        };
        self.changed.iter().map(message).collect()
    }
}
