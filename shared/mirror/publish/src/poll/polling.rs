//! Polls of one catalog and of all: their time, their order, and their reports.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use compose::Explanation;
use futures_util::{FutureExt, future};
use model::{CatalogName, Outcome, Status};
use tokio::{sync::Semaphore, time::timeout};
use tracing::Instrument;

use super::catalog_poll::Poll;
use super::fetched::Fetched;
use super::known::PollTimes;
use super::once::{self, Learned, SourceCheck};
use super::open_pull;
use super::pulled::ContentReader;
use super::resolved::ResolvedComposition;
use super::{composed, mirror::Mirror};
use crate::{
    Catalog, ComposedCatalog, ComposedSource, PollError, PollOptions, PollOrder, Report,
    record_status, status::read_status,
};

/// Maximum number of polls that [`Mirror::poll_all`] has begun and not ended. Most wait for a place
/// or a registry.
const POLLS_AT_ONCE: usize = 256;

/// Maximum time to count off cancelled pulls. A supervisor kills a process that does not stop soon.
const WITHDRAW_MAX: Duration = Duration::from_secs(5);

/// Result of [`Mirror::check_for_update`]: a finished poll, or the digest to pull.
#[derive(Debug)]
pub enum UpdateCheck {
    /// No pull is needed, or the check failed: this is the whole poll.
    Done(Box<Report>),
    /// A poll would pull this digest: it is new, or stored objects are damaged.
    Available(String),
}

impl Mirror {
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
    pub async fn poll_all(&self, catalogs: &[Catalog], options: PollOptions) -> Vec<Report> {
        let options = PollOptions {
            is_last: true,
            ..options
        };
        let order = PollOrder::new(catalogs);
        let places = Semaphore::new(POLLS_AT_ONCE);
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

    /// Composes a catalog without publishing it, from the inputs that a poll would take.
    ///
    /// # Errors
    /// Those of a poll.
    pub async fn compose(&self, composed: &ComposedSource) -> Result<ComposedCatalog, PollError> {
        let reader = self.composition_reader();
        let resolved = ResolvedComposition::find(self, &reader.images, composed, None).await?;
        composed::compose(&resolved, &reader, None, None, &mut Fetched::default()).await
    }

    /// Composes a catalog as [`Mirror::compose`] does, but returns only the reasons for which each
    /// bundle is in or out. Nothing is rendered.
    ///
    /// # Errors
    /// Those of a poll.
    pub async fn explain(&self, composed: &ComposedSource) -> Result<Explanation, PollError> {
        let reader = self.composition_reader();
        let resolved = ResolvedComposition::find(self, &reader.images, composed, None).await?;
        composed::explain(&resolved, &reader).await
    }

    fn composition_reader(&self) -> ContentReader {
        let limits = &self.settings.limits;
        ContentReader::new(self, limits, self.images(None), self.budget(limits))
    }

    /// Counts off the pulls whose polls were dropped before their end. To be called before an
    /// orderly end of the process: a pull that stays counts as a death of the process.
    pub async fn withdraw_pulls(&self) {
        let own = self.known.own_pulls();
        let withdrawing = async {
            for (catalog, inputs) in &own {
                open_pull::withdraw(self, catalog, inputs).await;
            }
        };
        if timeout(WITHDRAW_MAX, withdrawing).await.is_err() {
            tracing::warn!("cannot record in time that pulls were cancelled");
        }
    }

    /// Returns the times of the last polls of a catalog by this process; `None` before the first.
    /// `status.json` is written at most once an hour while nothing else changes.
    pub fn poll_times(&self, catalog: &CatalogName) -> Option<PollTimes> {
        self.known.times(catalog)
    }

    async fn run_poll(&self, catalog: &Catalog, options: PollOptions) -> Report {
        self.progress.catalogs.fetch_add(1, Ordering::Relaxed);
        let time = options.time.unwrap_or(Duration::MAX);
        let options = self.with_status(catalog, options).await;
        let started = Instant::now();
        let poll = Poll::new(self, catalog, &options);
        let mut learned = Learned::default();
        let run = timeout(time, once::run(&poll, &mut learned)).await;
        // Dropping the poll is safe: without its commit nothing is published, and collection
        // removes what it put.
        let ended = run.unwrap_or(Err(PollError::OutOfTime(time)));
        self.progress.done.fetch_add(1, Ordering::Relaxed);
        // Also after a failure: the poller function decides by the number of failures when the
        // catalog is due again.
        self.finish(&poll, learned, ended, started.elapsed()).await
    }

    async fn run_check(&self, catalog: &Catalog, before: Option<Status>) -> UpdateCheck {
        let options = PollOptions {
            before,
            ..PollOptions::default()
        };
        let options = self.with_status(catalog, options).await;
        let started = Instant::now();
        let poll = Poll::new(self, catalog, &options);
        let mut learned = Learned::default();
        let ended = match once::check(&poll, &mut learned).await {
            Ok(SourceCheck::New(attempt)) => {
                return UpdateCheck::Available(attempt.found.revision().to_string());
            }
            Ok(SourceCheck::Known(outcome)) => Ok(outcome),
            Err(error) => Err(error),
        };
        let report = self.finish(&poll, learned, ended, started.elapsed()).await;
        UpdateCheck::Done(Box::new(report))
    }

    /// Reads `status.json`, unless the caller has.
    async fn with_status(&self, catalog: &Catalog, mut options: PollOptions) -> PollOptions {
        if options.before.is_none() {
            options.before = read_status(&*self.store, &catalog.name).await;
        }
        options
    }

    /// Ends a poll: logs and counts it, and writes its status.
    async fn finish(
        &self,
        poll: &Poll<'_>,
        learned: Learned,
        ended: Result<Outcome, PollError>,
        duration: Duration,
    ) -> Report {
        let catalog = poll.catalog;
        let name = &catalog.name;
        let mut report = Report {
            catalog: name.clone(),
            outcome: match &ended {
                Ok(outcome) => *outcome,
                Err(error) => error.outcome(),
            },
            error: ended.err(),
            digest: learned.revision.map(|revision| revision.to_string()),
            content_hash: learned.published.map(|published| published.content_hash),
            serial: learned.published.map(|published| published.serial),
            changes: learned.changes,
            validation: learned.validation,
            notices: Vec::new(),
            ring: learned.ring,
            packages_validated: learned.packages_validated,
            layers_fetched: learned.fetched.layers_fetched,
            layers_skipped: learned.fetched.layers_skipped,
            bytes_pulled: learned.fetched.bytes,
            objects_published: learned.written.objects,
            bytes_published: learned.written.bytes,
            duration,
        };
        log(catalog, &report);
        let is_success = report.outcome.is_success();
        // Nothing was polled.
        if matches!(report.error, Some(PollError::Promotion(_))) {
            return report;
        }
        let now = (self.settings.env.clock)();
        let times = self.known.note_poll(name, now, is_success);
        let pull = learned.pull.as_ref();
        let duration_ms = report.duration.as_millis().try_into().unwrap_or(u64::MAX);
        let notices = learned.notices;
        let ended = Status {
            last_success: times.last_success,
            error: report
                .error_text()
                .map(|error| catalog.source.shown_text(&error)),
            duration_ms,
            pull_ms: is_pull(&report).then_some(duration_ms),
            bytes_pulled: report.bytes_pulled,
            bytes_published: report.bytes_published,
            empty_layers: learned.empty_layers,
            rejected: pull.and_then(|pull| pull.rejected(report.outcome, report.error.as_ref()?)),
            validation: report.validation,
            notices: notices.map(|notices| {
                notices
                    .iter()
                    .map(|notice| catalog.source.shown_text(notice))
                    .collect()
            }),
            next_at: report.next_at(),
            ..Status::new(catalog.source.shown(), report.outcome, now)
        };
        let known = poll.options.before.as_ref();
        let next = |before: Option<&Status>| {
            let mut next = ended.clone().after(before);
            if is_success && let Some(revision) = &report.digest {
                next.forget(revision, known);
            }
            // An ordinary error counts off this pull only: a registry that fails between two deaths
            // proves nothing.
            if let Some(pull) = pull {
                next.end_pull(&pull.inputs);
            }
            next
        };
        self.metrics.count(&report);
        let now_known = next(known);
        self.metrics.set_findings(name, now_known.validation);
        // A copy from before a pull does not count that pull, which must be counted off in any
        // case.
        let before = known.filter(|_| pull.is_none());
        let is_written = record_status(&*self.store, name, now, before, next).await;
        // A pull that could not be counted off stays known to this process, which does not take it
        // for a death.
        if is_written && pull.is_some() {
            self.known.set_own_pull(name, None);
        }
        report.notices = now_known.notices.unwrap_or_default();
        report
    }
}

/// Returns true if the duration is one of a pull. A pull that failed says nothing about how long
/// one takes, unless time is what it ran out of.
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
        // The reasons were told when the revision was found.
        Some(_) if matches!(report.error, Some(PollError::Held { is_known: true, .. })) => {
            tracing::info!(outcome, duration_ms, "the new content is still held back");
        }
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
