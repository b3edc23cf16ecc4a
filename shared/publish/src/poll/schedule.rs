use std::{collections::HashMap, future::pending, sync::Arc, time::Duration};

use model::{CatalogName, Outcome};
use tokio::{sync::Notify, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::due::{LastPoll, due};
use crate::{Catalog, Mirror, PollOptions, PollOrder, Report};

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
            let env = &self.mirror.settings.env;
            let last = LastPoll {
                ended: (env.clock)(),
                failures,
                // Without jitter all catalogs, started together, would ask their registries in the same second for ever.
                early: (env.rng)(),
            };
            if !self.pause(due(self.catalog.poll_interval(), &last, last.ended)).await {
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
            Some(wait) => {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = woken => {}
                }
            }
            None if is_composed => woken.await,
            None => return false,
        }
        true
    }
}
