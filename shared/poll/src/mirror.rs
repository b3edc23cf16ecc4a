use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use image::Images;
use layout::{Outcome, Status};
use seal::Signer;
use store::Store;
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    Catalog, Metrics, PollError, Progress, Report, Surroundings, status,
    turn::{self, Seen},
};

/// How the mirror works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How catalogs are rendered.
    pub render: render::Settings,
    /// Whether a plain `all.json` is kept as well, for stores that cannot decompress. Default: no.
    pub identity: bool,
    /// Catalogs that are pulled and rendered at a time: each holds memory. Default: 2.
    pub side_by_side: usize,
    /// Catalogs whose digests are looked up at a time: each holds a connection. Default: 16.
    pub resolves: usize,
    /// How often a turn starts again after a lost race. Default: 6.
    pub attempts: u32,
    /// Where turns take the time and chance from. Default: the system.
    pub surroundings: Surroundings,
    /// The keys that sign what is published. Default: none, and it is not signed.
    pub signer: Option<Signer>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            render: render::Settings::default(),
            identity: false,
            side_by_side: 2,
            resolves: 16,
            attempts: 6,
            surroundings: Surroundings::default(),
            signer: None,
        }
    }
}

/// What a turn may do, and what its caller knows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Pull although the digest is known, and publish although packages are gone.
    pub force: bool,
    /// The longest that it may take, writing `status.json` aside. A turn that runs out of time fails.
    pub time: Option<Duration>,
    /// What `status.json` says, if that is known: a turn that succeeds does not read it, and so would forget how long
    /// the last pull took.
    pub before: Option<&'a Status>,
}

/// What a [`Mirror::look`] found.
#[derive(Debug)]
pub enum Look {
    /// Nothing has to be pulled, or looking failed: this is all there is to do now.
    Done(Box<Report>),
    /// A turn would pull.
    Changed {
        /// The digest that the source has now.
        digest: String,
    },
}

/// Turns catalogs into what a store publishes.
pub struct Mirror {
    pub(crate) images: Images,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) rendering: Semaphore,
    pub(crate) resolving: Semaphore,
    pub(crate) progress: Arc<Progress>,
    metrics: Metrics,
}

impl Mirror {
    /// A mirror that reads with `images` and publishes to `store`.
    pub fn new(images: Images, store: Arc<dyn Store>, settings: Settings, metrics: Metrics) -> Self {
        let rendering = Semaphore::new(settings.side_by_side.max(1));
        let resolving = Semaphore::new(settings.resolves.max(1));
        Self {
            images,
            store,
            settings,
            rendering,
            resolving,
            progress: Arc::default(),
            metrics,
        }
    }

    /// How far the turns are.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// One turn of one catalog. `force` pulls although the digest is known and publishes although packages are gone.
    ///
    /// Boxed, because the state of a whole turn is large and callers hold many.
    pub fn turn<'a>(&'a self, catalog: &'a Catalog, force: bool) -> BoxFuture<'a, Report> {
        let options = Options {
            force,
            ..Options::default()
        };
        self.turn_with(catalog, options)
    }

    /// The same, with more said about it.
    pub fn turn_with<'a>(&'a self, catalog: &'a Catalog, options: Options<'a>) -> BoxFuture<'a, Report> {
        self.run_turn(catalog, options).boxed()
    }

    /// The cheap part of a turn: resolves the source and compares. Whatever needs no pull is done and reported, all else
    /// is left as it is for a turn, which may run later and elsewhere. `before` is as in [`Options`].
    pub fn look<'a>(&'a self, catalog: &'a Catalog, before: Option<&'a Status>) -> BoxFuture<'a, Look> {
        self.run_look(catalog, before).boxed()
    }

    async fn run_turn(&self, catalog: &Catalog, options: Options<'_>) -> Report {
        let started = Instant::now();
        self.progress.start();
        let mut report = Report::new(catalog.name.clone());
        let turn = turn::run(self, catalog, options.force, &mut report);
        let ended = match options.time {
            None => turn.await,
            Some(time) => timeout(time, turn).await.unwrap_or(Err(PollError::OutOfTime(time))),
        };
        self.progress.end();
        self.end(catalog, options.before, report, ended, started).await
    }

    async fn run_look(&self, catalog: &Catalog, before: Option<&Status>) -> Look {
        let started = Instant::now();
        let mut report = Report::new(catalog.name.clone());
        let ended = match turn::look(self, catalog, &mut report).await {
            Ok(Seen::New(_, digest)) => {
                return Look::Changed {
                    digest: digest.to_string(),
                };
            }
            Ok(Seen::Known(outcome)) => Ok(outcome),
            Err(error) => Err(error),
        };
        Look::Done(Box::new(self.end(catalog, before, report, ended, started).await))
    }

    async fn end(
        &self,
        catalog: &Catalog,
        before: Option<&Status>,
        mut report: Report,
        ended: Result<Outcome, PollError>,
        started: Instant,
    ) -> Report {
        report.end(ended, started.elapsed());
        log(catalog, &report);
        self.metrics.count(&report);
        status::record(self, catalog, before, &report).await;
        report
    }

    /// One turn of every catalog, side by side; the reports come in the order of the catalogs.
    pub async fn turn_all(&self, catalogs: &[Catalog], force: bool) -> Vec<Report> {
        let turns: Vec<_> = catalogs.iter().map(|catalog| self.turn(catalog, force)).collect();
        stream::iter(turns)
            .buffered(self.settings.resolves.max(1))
            .collect()
            .await
    }
}

fn log(catalog: &Catalog, report: &Report) {
    let duration_ms = report.duration.as_millis();
    let outcome = report.outcome.as_str();
    match report.error_text() {
        Some(error) => {
            tracing::error!(catalog = %catalog.name, source = %catalog.source, outcome, duration_ms, error, "poll");
        }
        None => tracing::info!(
            catalog = %catalog.name,
            outcome,
            duration_ms,
            digest = report.digest,
            content_hash = report.content_hash.map(tracing::field::display),
            serial = report.serial,
            bytes_pulled = report.bytes_pulled,
            bytes_published = report.bytes_published,
            "poll"
        ),
    }
}
