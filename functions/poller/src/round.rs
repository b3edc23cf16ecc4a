//! Looking at catalogs and pulling them, as long as there is time.

use std::time::Duration;

use futures_util::{StreamExt, future::join_all, stream};
use poll::{Look, Options, Report};
use tokio::time::timeout;

use crate::{Deadline, Message, configuration::Site, waiting::Waiting};

/// A look is one small request to the registry and two to S3: usually 0.1 s, and no sense in starting one with less.
const LOOK: Duration = Duration::from_secs(1);

/// Looks and pulls of one invocation.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    pub(crate) site: &'a Site,
    pub(crate) deadline: Deadline,
    /// Catalogs that are looked at a time.
    pub(crate) looks: usize,
    /// Catalogs that are pulled at a time.
    pub(crate) pulls: usize,
}

/// What a round did.
#[derive(Debug, Default)]
pub(crate) struct Done<'a> {
    pub(crate) reports: Vec<Report>,
    /// What has to be pulled, with the digest that was seen.
    pub(crate) changed: Vec<(&'a Waiting, String)>,
    /// What was not started, or not finished without a trace.
    pub(crate) left: Vec<&'a Waiting>,
}

impl<'a> Round<'a> {
    /// Does for each catalog what needs no pull.
    pub(crate) async fn look(self, mut waiting: Vec<&'a Waiting>) -> Done<'a> {
        waiting.sort_by_key(|waiting| waiting.order());
        let looks: Vec<_> = waiting.into_iter().map(|waiting| self.look_at(waiting)).collect();
        let looked: Vec<_> = stream::iter(looks).buffered(self.looks).collect().await;
        let mut done = Done::default();
        for (waiting, look) in looked {
            match look {
                Some(Look::Done(report)) => done.reports.push(*report),
                Some(Look::Changed { digest }) => done.changed.push((waiting, digest)),
                None => done.left.push(waiting),
            }
        }
        done
    }

    async fn look_at(self, waiting: &'a Waiting) -> (&'a Waiting, Option<Look>) {
        let Some(time) = self.deadline.time_for(LOOK) else {
            return (waiting, None);
        };
        let look = self.site.mirror.look(&waiting.catalog, waiting.before.as_ref());
        (waiting, timeout(time, look).await.ok())
    }

    /// Takes the turn of each catalog for which there is time.
    pub(crate) async fn pull(self, mut waiting: Vec<&'a Waiting>, force: bool) -> Done<'a> {
        waiting.sort_by_key(|waiting| waiting.order());
        self.adopt(&waiting).await;
        let turns: Vec<_> = waiting.into_iter().map(|waiting| self.turn(waiting, force)).collect();
        let turned: Vec<_> = stream::iter(turns).buffer_unordered(self.pulls).collect().await;
        let mut done = Done::default();
        for (waiting, report) in turned {
            match report {
                Some(report) => done.reports.push(report),
                None => done.left.push(waiting),
            }
        }
        done
    }

    /// From here on no publication is missed by those who want to know, even if the process ends right after a commit.
    async fn adopt(self, waiting: &[&Waiting]) {
        let names: Vec<_> = waiting.iter().map(|waiting| waiting.name().clone()).collect();
        self.site.notifier.adopt(&names).await;
    }

    async fn turn(self, waiting: &'a Waiting, force: bool) -> (&'a Waiting, Option<Report>) {
        let Some(time) = self.deadline.time_for(waiting.expected()) else {
            return (waiting, None);
        };
        let options = Options {
            force,
            time: Some(time),
            before: waiting.before.as_ref(),
        };
        (
            waiting,
            Some(self.site.mirror.turn_with(&waiting.catalog, options).await),
        )
    }

    /// Tells those who want to know. What does not arrive in time is sent after the next poll.
    pub(crate) async fn notify(self, reports: &[Report]) {
        let told: Vec<_> = reports.iter().map(|report| self.site.notifier.after(report)).collect();
        if timeout(self.deadline.left(), join_all(told)).await.is_err() {
            tracing::warn!("some receivers were not told in time");
        }
    }
}

impl Done<'_> {
    /// What others may pull.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let message = |(waiting, digest): &(&Waiting, String)| Message {
            catalog: waiting.name().clone(),
            digest: digest.clone(),
        };
        self.changed.iter().map(message).collect()
    }
}
