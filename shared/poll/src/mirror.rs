use std::{sync::Arc, time::Instant};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use image::Images;
use layout::Outcome;
use store::Store;
use tokio::sync::Semaphore;

use crate::{Catalog, Metrics, PollError, Progress, Report, status, turn};

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
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            render: render::Settings::default(),
            identity: false,
            side_by_side: 2,
            resolves: 16,
            attempts: 6,
        }
    }
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
        self.run_turn(catalog, force).boxed()
    }

    async fn run_turn(&self, catalog: &Catalog, force: bool) -> Report {
        let started = Instant::now();
        self.progress.start();
        let mut report = Report::new(catalog.name.clone());
        match turn::run(self, catalog, force, &mut report).await {
            Ok(outcome) => report.outcome = outcome,
            Err(error @ PollError::Suspicious(_)) => (report.outcome, report.error) = (Outcome::Refused, Some(error)),
            Err(error) => (report.outcome, report.error) = (Outcome::Failed, Some(error)),
        }
        self.progress.end();
        report.duration = started.elapsed();
        log(catalog, &report);
        self.metrics.count(&report);
        status::record(&*self.store, catalog, &report).await;
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
