use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use futures_util::{FutureExt, future};
use model::{CatalogName, Outcome, PullInputs, Status};
use parking_lot::Mutex;
use render::{ChunkLines, RenderLimits};
use source::{Digest, DownloadSpace, Source, Sources};
use store::Store;
use tokio::{sync::Semaphore, time::timeout};
use tracing::Instrument;
use work::{Budget, MemoryPool};

use super::once::{Poll, SourceCheck};
use super::open_pull::process_id;
use crate::{
    Catalog, MirrorSettings, PollError, PollMetrics, PollOptions, PollOrder, PollProgress, Report,
    SourceLimits, record_status, status::read_status,
};

/// Maximum number of polls that [`Mirror::poll_all`] has begun and not ended. Most wait for a place
/// or a registry.
const POLLS_AT_ONCE: usize = 256;

/// Time between two looks at the stored objects of an unchanged catalog. Each look is one small
/// request per object: 300 catalogs of 300 packages cost a dollar a day on S3.
const CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Result of [`Mirror::check_for_update`]: a finished poll, or the digest to pull.
#[derive(Debug)]
pub enum UpdateCheck {
    /// No pull is needed, or the check failed: this is the whole poll.
    Done(Box<Report>),
    /// A poll would pull this digest: it is new, or stored objects are damaged.
    Available(String),
}

/// Polls catalogs and publishes them to one store.
pub struct Mirror {
    pub(crate) images: Sources,
    pub(crate) store: Arc<dyn Store>,
    /// Identifier under which its pulls are recorded.
    pub(crate) process: String,
    pub(crate) settings: MirrorSettings,
    memory: MemoryPool,
    pub(crate) rendering: Arc<Semaphore>,
    pub(crate) resolving: Semaphore,
    progress: Arc<PollProgress>,
    metrics: PollMetrics,
    pub(crate) known: Mutex<HashMap<CatalogName, KnownCatalog>>,
}

/// Times of the last polls of a catalog by one process, by its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollTimes {
    /// End of the last poll.
    pub last_poll: SystemTime,
    /// End of the last poll that succeeded; `None` if none did.
    pub last_success: Option<SystemTime>,
}

/// Catalog as far as this process knows more of it than the store.
#[derive(Debug, Default)]
pub(crate) struct KnownCatalog {
    /// Times of its last polls, which `status.json` may not have yet.
    times: Option<PollTimes>,
    /// Time since boot of the last look at its stored objects.
    checked: Option<Duration>,
    /// Pull that this process has begun and not counted off. It is no death: this process lives.
    pub(crate) own_pull: Option<PullInputs>,
    /// Chunks of the last image that it pulled, and the limits that they kept.
    pub(crate) chunks: Option<(RenderLimits, ChunkLines)>,
}

impl Mirror {
    /// Reads with `images` and publishes to `store`. The limits of `images` and `settings` are for
    /// catalogs without their own.
    pub fn new(
        images: Sources,
        store: Arc<dyn Store>,
        settings: MirrorSettings,
        metrics: PollMetrics,
    ) -> Self {
        let rendering = Arc::new(Semaphore::new(settings.side_by_side.max(1)));
        let resolving = Semaphore::new(settings.resolves.max(1));
        // One pool and one space for all catalogs, so that the limits hold for the process.
        let memory = MemoryPool::new(settings.limits.memory_bytes);
        let space = DownloadSpace::new(settings.limits.download_bytes);
        metrics
            .budgets
            .get_or_init(|| (memory.clone(), space.clone()));
        Self {
            images: images.with_settings(|images| images.download_space = space),
            store,
            process: process_id((settings.env.rng)()),
            settings,
            memory,
            rendering,
            resolving,
            progress: Arc::default(),
            metrics,
            known: Mutex::default(),
        }
    }

    /// Trusts these CA bundles for registries from now on, in place of those before.
    ///
    /// # Errors
    /// CA files that cannot be used. Then nothing has changed.
    pub fn trust_ca_files(&self, ca_files: &[PathBuf]) -> Result<(), source::Error> {
        self.images.trust_ca_files(ca_files)
    }

    /// Returns the reader of a catalog's source, with the limits for its image.
    pub(crate) fn images(&self, catalog: &Catalog) -> Sources {
        let (images, time) = (self.images.clone(), self.limits(catalog).pull_time);
        // Changed settings are a copy, which the poll of an unchanged catalog need not make.
        if catalog.limits.is_none() && time <= images.settings.pull_timeout {
            return images;
        }
        images.with_settings(|images| {
            // The limit of the source alone would end a pull that is given more time.
            images.pull_timeout = images.pull_timeout.max(time);
            if let Some(limits) = &catalog.limits {
                images.limits = limits.image.clone();
            }
        })
    }

    /// Returns the limits of a catalog: its own, or those for catalogs without.
    pub(crate) fn limits<'c>(&'c self, catalog: &'c Catalog) -> &'c SourceLimits {
        catalog.limits.as_ref().unwrap_or(&self.settings.limits)
    }

    /// Returns a budget for one pull of a catalog. Its memory is that of all catalogs.
    pub(crate) fn budget(&self, catalog: &Catalog) -> Budget {
        Budget::new(self.limits(catalog).catalog.steps, self.memory.clone())
    }

    /// Returns the digest that a source of a catalog has now. A pinned digest needs no request, and
    /// no turn.
    pub(crate) async fn resolve(
        &self,
        catalog: &Catalog,
        source: &Source,
    ) -> Result<Digest, PollError> {
        if let Some(pinned) = source.pinned() {
            return Ok(pinned.clone());
        }
        let permit = self.resolving.acquire().await;
        let _permit = permit.expect("the semaphore is never closed");
        Ok(self.images(catalog).resolve(source).await?)
    }

    /// Returns the progress of all polls.
    pub fn progress(&self) -> Arc<PollProgress> {
        self.progress.clone()
    }

    /// Polls one catalog, and writes its `status.json`.
    ///
    /// Boxed, because the state of a whole poll is large and callers hold many.
    pub fn poll<'a>(
        &'a self,
        catalog: &'a Catalog,
        options: PollOptions,
    ) -> future::BoxFuture<'a, Report> {
        let span = tracing::info_span!("poll", catalog = %catalog.name);
        self.run_poll(catalog, options).instrument(span).boxed()
    }

    /// Does the cheap part of a poll: resolves the source and compares. If no pull is needed the
    /// poll is complete; else nothing is changed, and a poll may pull later and elsewhere. `before`
    /// is `status.json`, if it was read already.
    pub fn check_for_update<'a>(
        &'a self,
        catalog: &'a Catalog,
        before: Option<Status>,
    ) -> future::BoxFuture<'a, UpdateCheck> {
        let span = tracing::info_span!("check_for_update", catalog = %catalog.name);
        self.run_check(catalog, before).instrument(span).boxed()
    }

    /// Polls all catalogs for a process that does not poll them again: several at a time, and each
    /// composition after its inputs. The reports come in the order of the catalogs.
    pub async fn poll_all(&self, catalogs: &[Catalog], force: bool) -> Vec<Report> {
        let options = PollOptions {
            force,
            is_last: true,
            ..PollOptions::default()
        };
        let (order, places) = (PollOrder::new(catalogs), Semaphore::new(POLLS_AT_ONCE));
        let polls = catalogs.iter().map(async |catalog| {
            // Without a place, which its inputs may need.
            order.wait(&catalog.name).await;
            let _place = places
                .acquire()
                .await
                .expect("the semaphore is never closed");
            let report = self.poll(catalog, options.clone()).await;
            order.end(&catalog.name);
            report
        });
        future::join_all(polls).await
    }

    async fn run_poll(&self, catalog: &Catalog, options: PollOptions) -> Report {
        self.progress.catalogs.fetch_add(1, Ordering::Relaxed);
        let time = options.time.unwrap_or(Duration::MAX);
        let mut poll = self.begin(catalog, options).await;
        let ended = timeout(time, poll.run()).await;
        // Dropping the poll is safe: without its commit nothing is published, and collection
        // removes what it put.
        let ended = ended.unwrap_or(Err(PollError::OutOfTime(time)));
        self.progress.done.fetch_add(1, Ordering::Relaxed);
        // Also after a failure: the poller function decides by the number of failures when the
        // catalog is due again.
        self.finish(poll, ended).await
    }

    async fn run_check(&self, catalog: &Catalog, before: Option<Status>) -> UpdateCheck {
        let options = PollOptions {
            before,
            ..PollOptions::default()
        };
        let mut poll = self.begin(catalog, options).await;
        let ended = match poll.check().await {
            Ok(SourceCheck::New(_, digest)) => return UpdateCheck::Available(digest.to_string()),
            Ok(SourceCheck::Known(outcome)) => Ok(outcome),
            Err(error) => Err(error),
        };
        UpdateCheck::Done(Box::new(self.finish(poll, ended).await))
    }

    /// Begins a poll. Reads `status.json`, unless the caller has.
    async fn begin<'a>(&'a self, catalog: &'a Catalog, mut options: PollOptions) -> Poll<'a> {
        if options.before.is_none() {
            options.before = read_status(&*self.store, &catalog.name).await;
        }
        Poll::new(self, catalog, options)
    }

    /// Ends a poll: logs and counts it, and writes its status.
    async fn finish(&self, poll: Poll<'_>, ended: Result<Outcome, PollError>) -> Report {
        let (catalog, pull, mut report) = (poll.catalog, poll.pull, poll.report);
        report.end(ended, poll.started.elapsed());
        log(catalog, &report);
        let now = (self.settings.env.clock)();
        let times = self.known(&report.catalog, |known| {
            let last = known.times.and_then(|times| times.last_success);
            *known.times.insert(PollTimes {
                last_poll: now,
                last_success: if report.outcome.is_success() {
                    Some(now)
                } else {
                    last
                },
            })
        });
        let duration_ms = report.duration.as_millis().try_into().unwrap_or(u64::MAX);
        let error = report.error.as_ref();
        let ended = Status {
            last_success: times.last_success,
            error: report.error_text(),
            duration_ms,
            pull_ms: is_pull(&report).then_some(duration_ms),
            bytes_pulled: report.bytes_pulled,
            bytes_published: report.bytes_published,
            empty_layers: poll.empty_layers,
            rejected: pull
                .as_ref()
                .and_then(|pull| pull.rejected(report.outcome, error?)),
            validation: report.validation,
            ..Status::new(catalog.source.to_string(), report.outcome, times.last_poll)
        };
        let next = |before: Option<&Status>| {
            let mut next = ended.clone().after(before);
            if let Some(revision) = report
                .digest
                .as_ref()
                .filter(|_| report.outcome.is_success())
            {
                next.forget(revision);
            }
            // An ordinary error counts off this pull only: a registry that fails between two deaths
            // proves nothing.
            if let Some(pull) = &pull {
                next.end_pull(&pull.inputs, &self.process);
            }
            next
        };
        self.metrics.count(&report);
        let before = poll.options.before.as_ref();
        self.metrics
            .set_findings(&catalog.name, next(before).validation);
        // A copy from before a pull does not count that pull, which must be counted off in any
        // case.
        let before = before.filter(|_| pull.is_none());
        let is_written =
            record_status(&*self.store, &catalog.name, times.last_poll, before, next).await;
        // A pull that could not be counted off stays known to this process, which does not take it
        // for a death.
        if is_written && pull.is_some() {
            self.known(&catalog.name, |known| known.own_pull = None);
        }
        report
    }

    /// Returns the times of the last polls of a catalog by this process; `None` before the first.
    /// `status.json` is written at most once an hour while nothing else changes.
    pub fn poll_times(&self, catalog: &CatalogName) -> Option<PollTimes> {
        self.known(catalog, |known| known.times)
    }

    /// Returns true if this process has not looked at the stored objects of a catalog for an hour.
    pub(crate) fn is_check_due(&self, catalog: &CatalogName) -> bool {
        let now = (self.settings.env.since_boot)();
        let checked = self.known(catalog, |known| known.checked);
        checked.is_none_or(|last| now.saturating_sub(last) >= CHECK_INTERVAL)
    }

    /// Notes that the stored objects of a catalog were all there just now.
    pub(crate) fn note_check(&self, catalog: &CatalogName) {
        let now = (self.settings.env.since_boot)();
        self.known(catalog, |known| known.checked = Some(now));
    }

    /// Reads or changes what this process knows of a catalog.
    pub(crate) fn known<T>(
        &self,
        catalog: &CatalogName,
        work: impl FnOnce(&mut KnownCatalog) -> T,
    ) -> T {
        let mut known = self.known.lock();
        work(known.entry(catalog.clone()).or_default())
    }
}

/// A pull that failed says nothing about how long one takes, unless time is what it ran out of.
fn is_pull(report: &Report) -> bool {
    match report.outcome {
        Outcome::Failed => matches!(
            report.error,
            Some(PollError::OutOfTime(_) | PollError::PullTime(_))
        ),
        _ => report.bytes_pulled > 0,
    }
}

fn log(catalog: &Catalog, report: &Report) {
    let duration_ms = report.duration.as_millis();
    let outcome = report.outcome.as_str();
    match report.error_text() {
        Some(error) => {
            let failed_for_good = report.failed_for_good();
            tracing::error!(target: "report", source = %catalog.source, outcome, failed_for_good, duration_ms, error, "poll failed");
        }
        None => tracing::info!(
            outcome,
            duration_ms,
            digest = report.digest,
            content_hash = report.content_hash.map(tracing::field::display),
            serial = report.serial,
            bytes_pulled = report.bytes_pulled,
            bytes_published = report.bytes_published,
            "polled catalog"
        ),
    }
}
