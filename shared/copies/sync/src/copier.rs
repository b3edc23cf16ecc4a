use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, future::join_all, stream};
use model::{
    CatalogName, Facts, ManifestEntry, Outcome, Snapshot, Status, ValidationCounts, text::chain,
};
use olm::{FINDINGS, ValidationSummary};
use publish::{RaceRetries, record_status};
use store::{Store, read_stored};
use tokio::sync::Semaphore;

use crate::planned::{Plan, Planned};
use crate::{CopyProgress, Origin, SyncError, SyncOptions, SyncReport};

/// Number of objects in flight for each catalog, as of a poll: enough to hide the latency of a CDN,
/// few enough for a small server.
pub(crate) const OBJECTS_IN_FLIGHT: usize = 16;

/// Number of catalogs that are copied at the same time. Each holds up to 16 MiB of objects in
/// flight.
const CATALOGS_IN_FLIGHT: usize = 4;

/// Maximum number of attempts of one copy after lost races, the first one included.
const ATTEMPTS: u32 = 4;

/// Copies catalogs from an origin to a store, byte for byte.
///
/// ```
/// # use std::sync::Arc;
/// # use sync::{Copier, Origin, SyncOptions};
/// # use model::{CatalogName, Document, Key, Outcome};
/// # use store::{Condition, Store};
/// # use storekit::MemoryStore;
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let name: CatalogName = "demo".parse()?;
/// # let built = testkit::SnapshotBuilder::new()
/// #     .package("db", "{\"name\":\"db\",\"schema\":\"olm.package\"}\n")
/// #     .build();
/// # let (from, to) = (MemoryStore::new(), MemoryStore::new());
/// # for (key, bytes) in built.objects {
/// #     from.put(&key, bytes, Condition::CreateOnly).await?;
/// # }
/// # let pointer = testkit::current(&built.snapshot).to_bytes();
/// # from.put(&Key::Current(name.clone()), pointer.into(), Condition::CreateOnly).await?;
/// let origin = Origin::Store(Arc::new(from));
/// let copier = Copier::new(origin, Arc::new(to), SyncOptions::default());
/// for outcome in [Outcome::Published, Outcome::Unchanged] {
///     assert_eq!(copier.copy_all(&[name.clone()]).await[0].outcome, outcome);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Copier {
    pub(crate) origin: Origin,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: SyncOptions,
    pub(crate) progress: Arc<CopyProgress>,
    /// Place for the one catalog whose all.json and image are made: that takes all cores, so
    /// several at a time gain nothing.
    pub(crate) rebuilds: Semaphore,
}

/// State of copying one catalog, across attempts.
pub(crate) struct CopyState {
    pub(crate) report: SyncReport,
    /// True once the pointer of the origin was verified, or if the store has the catalog already.
    pub(crate) accepted: bool,
    /// Looks at every object before relying on it.
    pub(crate) recheck: bool,
}

impl Copier {
    /// Creates a copier from `origin` to `store`.
    pub fn new(origin: Origin, store: Arc<dyn Store>, options: SyncOptions) -> Self {
        Self {
            origin,
            store,
            options,
            progress: Arc::default(),
            rebuilds: Semaphore::new(1),
        }
    }

    /// Returns the progress of the running copies.
    pub fn progress(&self) -> Arc<CopyProgress> {
        self.progress.clone()
    }

    /// Brings catalogs up to date, several at a time, and writes the `status.json` of each. Returns
    /// the reports in the order of `names`, with the errors in them.
    pub async fn copy_all(&self, names: &[CatalogName]) -> Vec<SyncReport> {
        self.run_all(names, false).await
    }

    /// Brings every catalog up to date that the origin lists, several at a time. Returns the
    /// reports in the order of the names. A listed catalog without a pointer is not an error,
    /// because a mirror lists catalogs that it does not serve.
    ///
    /// # Errors
    /// [`SyncError::Origin`] if the list cannot be read.
    pub async fn copy_listed(&self) -> Result<Vec<SyncReport>, SyncError> {
        let listed = self.origin.names().await.map_err(SyncError::Origin)?;
        let names: Vec<CatalogName> = listed.into_iter().collect();
        Ok(self.run_all(&names, true).await)
    }

    async fn run_all(&self, names: &[CatalogName], listed: bool) -> Vec<SyncReport> {
        let places = Semaphore::new(CATALOGS_IN_FLIGHT);
        let copies = names.iter().map(async |name| {
            let _place = places
                .acquire()
                .await
                .expect("the semaphore is never closed");
            self.run(name, listed).await
        });
        join_all(copies).await
    }

    #[tracing::instrument(name = "sync", skip_all, fields(catalog = %name, source = self.options.source))]
    async fn run(&self, name: &CatalogName, listed: bool) -> SyncReport {
        let started = Instant::now();
        let mut state = CopyState::new(name, self.options.recheck);
        let mut retries = RaceRetries::new(&self.options.env, ATTEMPTS);
        let copied = loop {
            match self.attempt(name, &mut state).await {
                Err(error) => {
                    // A damaged object was met that had been staged and cannot be written twice.
                    // The next attempt looks first.
                    state.recheck |=
                        matches!(&error, SyncError::Publish(error) if error.is_damage());
                    if let Err(error) = retries.again(error).await {
                        break Err(error);
                    }
                }
                done => break done,
            }
        };
        let report = &mut state.report;
        match copied {
            Ok(outcome) => report.outcome = outcome,
            Err(SyncError::UnknownCatalog(_)) if listed => {
                report.outcome = Outcome::Unchanged;
                report.not_served = true;
            }
            Err(error) => {
                report.outcome = error.outcome();
                report.error = Some(chain(&error));
            }
        }
        report.duration = started.elapsed();
        log(report);
        // An untrusted origin may list any number of names. Only a catalog that is here, or that is
        // accepted, gets a document of its own.
        if state.accepted && !report.not_served {
            self.record_status(report).await;
        }
        state.report
    }

    async fn record_status(&self, report: &SyncReport) {
        let now = (self.options.env.clock)();
        let ended = Status {
            error: report.error.clone(),
            duration_ms: report.duration.as_millis().try_into().unwrap_or(u64::MAX),
            bytes_pulled: report.moved.bytes,
            bytes_published: report.moved.bytes + report.rebuilt.bytes,
            validation: report.validation,
            ..Status::new(self.options.source.clone(), report.outcome, now)
        };
        record_status(&*self.store, &report.catalog, now, None, |before| {
            ended.clone().after(before)
        })
        .await;
    }

    async fn attempt(
        &self,
        name: &CatalogName,
        state: &mut CopyState,
    ) -> Result<Outcome, SyncError> {
        match self.plan(name, state).await? {
            Planned::Copy(plan) => self.carry_out(*plan, &mut state.report).await,
            Planned::Unchanged(transaction) => {
                transaction.restore_name().await?;
                Ok(Outcome::Unchanged)
            }
            Planned::Behind { theirs, ours } => {
                tracing::info!(
                    serial = ours,
                    origin_serial = theirs,
                    "origin serves an earlier state, keeping ours"
                );
                Ok(Outcome::Unchanged)
            }
        }
    }

    /// Writes what is missing. The pointer comes last, when everything that it leads to is durable.
    async fn carry_out(&self, plan: Plan, report: &mut SyncReport) -> Result<Outcome, SyncError> {
        let (derived, shards): (Vec<_>, Vec<_>) = plan
            .missing
            .iter()
            .partition(|entry| plan.snapshot.can_make(&entry.key()));
        let mut copying = Copying {
            copier: self,
            plan: &plan,
            report: &mut *report,
            left: derived,
        };
        // Shards first: the derived objects are made from those in the store.
        copying.bring(shards).await?;
        copying.rebuild().await?;
        let left = std::mem::take(&mut copying.left);
        copying.bring(left).await?;
        if let Some(bytes) = &plan.snapshot_bytes {
            let written = plan
                .transaction
                .put_verified(plan.next.snapshot, bytes.clone())
                .await?;
            tracing::debug!(snapshot = %plan.next.snapshot.key(), written, "stored the snapshot");
        }
        let outcome = plan.outcome();
        // Byte for byte: a copy has no signing key, and readers verify the signature of the origin.
        plan.transaction.commit_copy(plan.bytes, &plan.next).await?;
        report.repaired = plan
            .transaction
            .replaced()
            .iter()
            .map(ToString::to_string)
            .collect();
        report.describe(&plan.next);
        report.validation = self.findings(&plan.snapshot).await;
        Ok(outcome)
    }

    /// Returns the numbers of findings that were copied with a Snapshot.
    async fn findings(&self, snapshot: &Snapshot) -> Option<ValidationCounts> {
        let facts = read_stored::<Facts>(&*self.store, snapshot.facts.get(FINDINGS.name)?).await;
        let summary = facts
            .ok()
            .and_then(|facts| ValidationSummary::of(&facts).ok());
        if summary.is_none() {
            // Only for the status: the copy is published already.
            tracing::warn!("cannot read the findings");
        }
        summary.map(|summary| summary.counts)
    }
}

/// Copy of one planned state.
pub(crate) struct Copying<'a> {
    pub(crate) copier: &'a Copier,
    pub(crate) plan: &'a Plan,
    pub(crate) report: &'a mut SyncReport,
    /// Derived objects that were not made yet. In the end they have to be fetched.
    pub(crate) left: Vec<ManifestEntry>,
}

impl Copying<'_> {
    async fn bring(&mut self, entries: Vec<ManifestEntry>) -> Result<(), SyncError> {
        let copier = self.copier;
        let transaction = &self.plan.transaction;
        let begun: Vec<_> = entries
            .iter()
            .map(|entry| copier.bring(transaction, entry))
            .collect();
        let mut fetches = stream::iter(begun).buffer_unordered(OBJECTS_IN_FLIGHT);
        while let Some(bytes) = fetches.try_next().await? {
            self.report.moved.add(bytes);
            copier.progress.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl CopyState {
    pub(crate) fn new(name: &CatalogName, recheck: bool) -> Self {
        Self {
            report: SyncReport::new(name.clone()),
            accepted: false,
            recheck,
        }
    }
}

fn log(report: &SyncReport) {
    let outcome = report.outcome.as_str();
    let duration_ms = report.duration.as_millis();
    match &report.error {
        Some(error) => {
            tracing::error!(target: "report", outcome, duration_ms, error, "could not copy catalog");
        }
        None if report.not_served => tracing::warn!(
            duration_ms,
            "origin lists the catalog but does not serve it"
        ),
        None => tracing::info!(
            outcome,
            duration_ms,
            digest = report.content_hash.map(tracing::field::display),
            serial = report.serial,
            bytes_moved = report.moved.bytes,
            bytes_rebuilt = report.rebuilt.bytes,
            "copied catalog"
        ),
    }
}
