use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use futures_util::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture, stream};
use keep::add_name;
use layout::{CatalogName, Key, Outcome};
use seal::Trust;
use store::{Condition, Store};
use tokio::sync::Semaphore;

use crate::{
    Allow, Origin, Progress, Report, SyncError,
    plan::{Missing, Plan},
    status,
};

/// The wait before a copy starts again because something moved under it.
const RACE_PAUSE: Duration = Duration::from_millis(50);

/// How copies are made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What `status.json` calls the origin. It must hold no secret.
    pub source: String,
    /// What a copy may do beyond going forward.
    pub allow: Allow,
    /// Whether the forms of `all.json`, the index and the image are made here of the Shards rather than moved. Default:
    /// yes.
    pub rebuild: bool,
    /// Whether everything is looked at again, and damaged objects are replaced. Default: no, what the published state
    /// of the store names is believed to be there.
    pub recheck: bool,
    /// Objects that are on their way at a time. Default: 16.
    pub in_flight: usize,
    /// Catalogs that are copied at a time. Default: 4.
    pub side_by_side: usize,
    /// How often a copy starts again after a lost race. Default: 4.
    pub attempts: u32,
    /// The keys of which one has to have signed what is copied. Default: none is asked for.
    pub trust: Option<Trust>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            source: String::new(),
            allow: Allow::default(),
            rebuild: true,
            recheck: false,
            in_flight: 16,
            side_by_side: 4,
            attempts: 4,
            trust: None,
        }
    }
}

/// Copies catalogs from an origin to a store, byte for byte.
pub struct Copier {
    pub(crate) origin: Arc<dyn Origin>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) rebuilding: Semaphore,
    pub(crate) progress: Arc<Progress>,
}

impl Copier {
    /// A copier from `origin` to `store`.
    pub fn new(origin: Arc<dyn Origin>, store: Arc<dyn Store>, settings: Settings) -> Self {
        Self {
            origin,
            store,
            settings,
            // Each takes all cores and a few megabytes.
            rebuilding: Semaphore::new(1),
            progress: Arc::default(),
        }
    }

    /// How far the copies are.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Brings one catalog up to date, and writes its `status.json`.
    ///
    /// Boxed, because the state of a whole copy is large and callers hold many.
    pub fn copy<'a>(&'a self, name: &'a CatalogName) -> BoxFuture<'a, Report> {
        self.run(name).boxed()
    }

    /// The same for many, side by side; the reports come in the order of the names.
    pub async fn copy_all(&self, names: &[CatalogName]) -> Vec<Report> {
        let copies: Vec<_> = names.iter().map(|name| self.copy(name)).collect();
        stream::iter(copies)
            .buffered(self.settings.side_by_side.max(1))
            .collect()
            .await
    }

    async fn run(&self, name: &CatalogName) -> Report {
        let started = Instant::now();
        let mut report = Report::new(name.clone());
        match self.attempts(name, &mut report).await {
            Ok(outcome) => report.outcome = outcome,
            Err(error @ (SyncError::Refused(_) | SyncError::Untrusted(_))) => {
                (report.outcome, report.error) = (Outcome::Refused, Some(error));
            }
            Err(error) => (report.outcome, report.error) = (Outcome::Failed, Some(error)),
        }
        report.duration = started.elapsed();
        self.log(&report);
        status::record(&*self.store, &self.settings.source, &report).await;
        report
    }

    async fn attempts(&self, name: &CatalogName, report: &mut Report) -> Result<Outcome, SyncError> {
        let mut left = self.settings.attempts.max(1);
        loop {
            left -= 1;
            match self.turn(name, report).await {
                Err(error) if error.is_race() && left > 0 => {
                    tracing::info!(catalog = %name, error = telemetry::chain(&error), "starting again");
                    tokio::time::sleep(RACE_PAUSE * (self.settings.attempts - left)).await;
                }
                done => return done,
            }
        }
    }

    async fn turn(&self, name: &CatalogName, report: &mut Report) -> Result<Outcome, SyncError> {
        match self.plan(name, report).await? {
            Some(plan) => self.carry_out(plan, report).await,
            None => Ok(Outcome::Unchanged),
        }
    }

    /// The pointer is written last, when everything that it leads to is there for good.
    async fn carry_out(&self, plan: Plan, report: &mut Report) -> Result<Outcome, SyncError> {
        let (derived, shards): (Vec<_>, Vec<_>) = plan.missing.iter().cloned().partition(Missing::is_derived);
        self.bring_all(&shards, report).await?;
        let derived = if self.settings.rebuild {
            self.rebuild(&plan.snapshot, derived, report).await?
        } else {
            derived
        };
        self.bring_all(&derived, report).await?;
        if let Some((bytes, condition)) = plan.snapshot_bytes.clone() {
            let key = Key::Snapshot(plan.name.clone(), plan.next.content_hash);
            self.store.put(&key, bytes, condition).await?;
        }
        self.store.flush().await?;
        self.commit(&plan).await?;
        report.describe(&plan.next);
        Ok(plan.outcome())
    }

    async fn commit(&self, plan: &Plan) -> Result<(), SyncError> {
        let condition = match &plan.ours {
            Some(ours) if ours.bytes == plan.bytes => return Ok(add_name(&*self.store, &plan.name).await?),
            Some(ours) => Condition::Replace(ours.version.clone()),
            None => Condition::CreateOnly,
        };
        let mut watch = plan.watch.clone();
        if let Some(replaced) = plan.replaced() {
            watch.spare(replaced);
        }
        let key = Key::Current(plan.name.clone());
        let announced = watch.settle(&*self.store, &plan.name, &plan.snapshot).await?;
        // Before the commit: a name without a catalog is harmless, a catalog without a name is never found. And after it
        // was announced, or whoever removes the catalog could take the name once more.
        add_name(&*self.store, &plan.name).await?;
        self.store.put(&key, plan.bytes.clone(), condition).await?;
        announced.withdraw(&*self.store).await;
        Ok(())
    }

    async fn bring_all(&self, missing: &[Missing], report: &mut Report) -> Result<(), SyncError> {
        let fetches: Vec<_> = missing.iter().map(|missing| self.bring(missing)).collect();
        let mut fetches = stream::iter(fetches).buffer_unordered(self.settings.in_flight.max(1));
        while let Some(bytes) = fetches.try_next().await? {
            report.moved.add(bytes);
            self.progress.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn log(&self, report: &Report) {
        let (outcome, duration_ms) = (report.outcome.as_str(), report.duration.as_millis());
        let (catalog, source) = (&report.catalog, &self.settings.source);
        match report.error_text() {
            Some(error) => tracing::error!(%catalog, source, outcome, duration_ms, error, "sync"),
            None => tracing::info!(
                %catalog,
                source,
                outcome,
                duration_ms,
                content_hash = report.content_hash.map(tracing::field::display),
                serial = report.serial,
                bytes_moved = report.moved.bytes,
                bytes_rebuilt = report.rebuilt.bytes,
                "sync"
            ),
        }
    }
}
