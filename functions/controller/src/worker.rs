//! The work of the replica that leads.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use kube::{
    Api,
    runtime::{Controller, controller::Error as ControllerError, watcher},
};
use model::Sha256;
use tokio_util::sync::CancellationToken;
use upkeep::{GcMetrics, Retention};

use crate::{
    catalog::ClusterCatalog,
    election::Election,
    reconcile::{ReconcileError, Reconciler},
    replicas::pointer_hash,
    run::Program,
};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The part that works on ClusterCatalogs while this replica leads.
pub(crate) struct Worker {
    pub(crate) program: Arc<Program>,
    pub(crate) reconciler: Arc<Reconciler>,
    pub(crate) collections: GcMetrics,
}

impl Worker {
    /// Works whenever this replica leads, and follows the leader else, until the program stops.
    pub(crate) async fn run(&self, mut election: Election) {
        let Program {
            stop,
            flags,
            follower,
            leadership,
            ..
        } = &*self.program;
        let me = election.me().to_owned();
        if !flags.leader_elect {
            return self.lead(&me, stop.cancelled()).await;
        }
        loop {
            let (sight, hurry) = (election.sight(), Arc::clone(&election.hurry));
            let is_acquired = tokio::select! {
                is_acquired = election.acquire(stop) => is_acquired,
                () = follower.follow(sight, &hurry) => false,
                () = self.reconciler.hold_named(follower) => false,
            };
            if !is_acquired {
                return follower.leave().await;
            }
            self.lead(&me, election.hold(stop, |start| leadership.renewed(start)))
                .await;
            if stop.is_cancelled() {
                // Nothing is written any more, so another replica may begin.
                return election.release().await;
            }
        }
    }

    /// Works until `end`. Nothing is written after that.
    async fn lead(&self, me: &str, end: impl Future<Output = ()>) {
        let program = &self.program;
        program
            .leadership
            .begin(me, program.flags.leader_elect, self.published().await);
        program.follower.set_leading(true);
        program.leading.set(1);
        tracing::info!("this replica leads");
        let work = CancellationToken::new();
        let collecting = upkeep::collect_regularly(
            self.program.store.clone(),
            self.retention(),
            self.collections.clone(),
            work.clone(),
        );
        tokio::select! {
            () = end => {}
            () = self.reconcile_all() => {}
            () = self.remove_orphans() => {}
        }
        program.leadership.end();
        program.follower.set_leading(false);
        program.leading.set(0);
        tracing::info!("this replica does not lead any more");
        work.cancel();
        if let Err(error) = collecting.await {
            tracing::error!(%error, "the collection of garbage broke off");
        }
        // An orderly end is no death of the process.
        self.reconciler.mirror.withdraw_pulls().await;
        // The next leader polls all catalogs anew, and so does this one if it leads again.
        self.reconciler.forget();
    }

    /// Returns the hashes of the pointers in the store.
    async fn published(&self) -> BTreeMap<String, Sha256> {
        let store = &*self.program.store;
        let mut published = BTreeMap::new();
        // What cannot be read now is listed when it is polled.
        let names = publish::catalog_names(store)
            .await
            .map(|names| names.catalogs)
            .unwrap_or_default();
        for name in names {
            if let Ok(Some(hash)) = pointer_hash(store, name.as_str()).await {
                published.insert(name.to_string(), hash);
            }
        }
        published
    }

    /// Returns what stays besides what is published. A cluster has no rollback, so its own store keeps earlier states for a
    /// day at most; a store that was named may be used by others.
    fn retention(&self) -> Retention {
        match self.program.flags.store {
            Some(_) => Retention::default(),
            None => Retention {
                generations: 1,
                max_age: DAY,
                grace: HOUR,
            },
        }
    }

    async fn reconcile_all(&self) {
        let controller = Controller::new(
            Api::<ClusterCatalog>::all(self.program.client.clone()),
            watcher::Config::default(),
        );
        let all_due = stream::unfold(self.reconciler.all_due.clone(), |all_due| async {
            all_due.notified().await;
            Some(((), all_due))
        });
        let controller = controller.reconcile_all_on(all_due);
        let done = controller.run(
            |object, reconciler: Arc<Reconciler>| reconciler.reconcile(object),
            |object, error: &ReconcileError, _| Reconciler::after_error(&object, error),
            self.reconciler.clone(),
        );
        done.for_each(|done| async move {
            match done {
                // The errors of reconciliations are logged with their objects, and a removed object needs nothing.
                Ok(_) | Err(ControllerError::ReconcilerFailed(..) | ControllerError::ObjectNotFound(_)) => {}
                Err(error) => tracing::warn!(error = model::text::chain(&error), "cannot watch ClusterCatalogs"),
            }
        })
        .await;
    }

    /// Removes catalogs without a ClusterCatalog, such as one whose finalizer was removed by hand, from the default store. A
    /// store that was named may have catalogs of others.
    async fn remove_orphans(&self) {
        if self.program.flags.store.is_some() {
            return pending().await;
        }
        loop {
            if self
                .program
                .listed
                .clone()
                .wait_for(|is_listed| *is_listed)
                .await
                .is_err()
            {
                return pending().await;
            }
            if let Err(error) = self.remove_orphans_once().await {
                tracing::warn!(
                    error = model::text::chain(&error),
                    "cannot remove catalogs without a ClusterCatalog"
                );
            }
            tokio::time::sleep(self.program.flags.gc_interval).await;
        }
    }

    async fn remove_orphans_once(&self) -> Result<(), store::ReadError> {
        let store = &*self.program.store;
        let published = publish::catalog_names(store).await?.catalogs;
        let known: BTreeSet<String> = self
            .program
            .objects
            .state()
            .iter()
            .map(|object| object.name().to_owned())
            .collect();
        for name in published {
            if !known.contains(name.as_str()) {
                publish::remove(store, &name).await?;
                self.program.leadership.list(name.as_str(), None);
                tracing::info!(catalog = %name, "removed a catalog that has no ClusterCatalog");
            }
        }
        Ok(())
    }
}
