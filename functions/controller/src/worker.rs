//! The work of a replica: on ClusterCatalogs while it leads, and on its own store else.

use std::{future::pending, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use kube::runtime::controller::{Action, Error as ControllerError};
use kube::runtime::{Controller, watcher};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use upkeep::{GcMetrics, Retention};

use crate::catalog::ClusterCatalog;
use crate::election::{Election, Role};
use crate::named::{LOOK_INTERVAL, hold, remove_others};
use crate::reconcile::{Context, ReconcileError, after_error, reconcile};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The part that publishes.
pub(crate) struct Worker {
    pub(crate) context: Arc<Context>,
    pub(crate) role: Arc<watch::Sender<Role>>,
    pub(crate) collections: GcMetrics,
    /// Time between two removals of catalogs without a ClusterCatalog; `None` for a store that was
    /// named, which may have catalogs of others.
    pub(crate) removal_interval: Option<Duration>,
    /// Cancelled when the program stops.
    pub(crate) stop: CancellationToken,
}

impl Worker {
    /// Works whenever this replica leads, and holds what the statuses name else, until the program
    /// stops. Without an election this is the only replica.
    pub(crate) async fn run(&self, election: Option<Election>) {
        let Some(mut election) = election else {
            return self.lead(self.stop.cancelled()).await;
        };
        while self.follow(&mut election).await {
            self.lead(election.hold(&self.stop)).await;
            if self.stop.is_cancelled() {
                // Nothing is written any more, so another replica may begin.
                return election.release().await;
            }
        }
    }

    /// Waits until this replica leads. Returns false if the program stops before.
    async fn follow(&self, election: &mut Election) -> bool {
        let has_own_store = self.context.served.has_own_store;
        let waiting = async {
            tokio::select! {
                is_acquired = election.acquire(&self.stop) => is_acquired,
                () = self.work_on_all(hold) => false,
                () = self.remove_others(has_own_store.then_some(LOOK_INTERVAL)) => false,
            }
        };
        let is_acquired = if has_own_store {
            self.collecting(waiting).await
        } else {
            waiting.await
        };
        // An orderly end is no death of the process.
        self.context.puller.mirror.withdraw_pulls().await;
        is_acquired
    }

    /// Works until `end`. Nothing is written after that.
    async fn lead(&self, end: impl Future<Output = ()>) {
        self.role.send_replace(Role::Leader);
        tracing::info!("this replica leads");
        let leading = async {
            tokio::select! {
                () = end => {}
                () = self.work_on_all(reconcile) => {}
                () = self.remove_others(self.removal_interval) => {}
            }
        };
        self.collecting(leading).await;
        self.role.send_replace(Role::Follower);
        tracing::info!("this replica does not lead any more");
        self.context.puller.mirror.withdraw_pulls().await;
        // The next leader polls all catalogs anew, and so does this one if it leads again.
        self.context.served.polls.forget_all();
    }

    /// Collects garbage during some work.
    async fn collecting<T>(&self, work: impl Future<Output = T>) -> T {
        let end = CancellationToken::new();
        // A cluster has no rollback, so its own store keeps earlier states for a day at most; a
        // store that was named may be used by others.
        let retention = match self.removal_interval {
            None => Retention::default(),
            Some(_) => Retention {
                generations: 1,
                max_age: DAY,
                grace: HOUR,
            },
        };
        let store = Arc::clone(&self.context.served.store);
        let collection =
            upkeep::collect_regularly(store, retention, self.collections.clone(), end.clone());
        let done = work.await;
        end.cancel();
        if let Err(error) = collection.await {
            tracing::error!(%error, "the collection of garbage broke off");
        }
        done
    }

    /// Works on each ClusterCatalog after each change of it, and at the times that its work asks
    /// for.
    async fn work_on_all<F>(&self, work: fn(Arc<ClusterCatalog>, Arc<Context>) -> F)
    where
        F: Future<Output = Result<Action, ReconcileError>> + Send + 'static,
    {
        let controller = Controller::new(self.context.catalogs.clone(), watcher::Config::default());
        let all_due = stream::unfold(Arc::clone(&self.context.served.polls), |polls| async {
            polls.all_due.notified().await;
            Some(((), polls))
        });
        let controller = controller.reconcile_all_on(all_due);
        let done = controller.run(
            work,
            |object, error, _| after_error(&object, error),
            Arc::clone(&self.context),
        );
        done.for_each(|done| async move {
            match done {
                // The errors of reconciliations are logged with their objects, and a removed object
                // needs nothing.
                Ok(_)
                | Err(ControllerError::ReconcilerFailed(..) | ControllerError::ObjectNotFound(_)) =>
                    {}
                Err(error) => tracing::warn!(
                    error = model::text::chain(&error),
                    "cannot watch ClusterCatalogs"
                ),
            }
        })
        .await;
    }

    /// Removes catalogs without a ClusterCatalog at an interval, such as one whose finalizer was
    /// removed by hand.
    async fn remove_others(&self, interval: Option<Duration>) {
        let served = &self.context.served;
        let mut listed = served.listed.clone();
        let (Some(interval), Ok(_)) = (interval, listed.wait_for(|is_listed| *is_listed).await)
        else {
            return pending().await;
        };
        loop {
            if let Err(error) = remove_others(served).await {
                let error = model::text::chain(&error);
                tracing::warn!(error, "cannot remove catalogs without a ClusterCatalog");
            }
            tokio::time::sleep(interval).await;
        }
    }
}
