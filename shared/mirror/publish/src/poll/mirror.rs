use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use source::{Digest, DownloadSpace, Source, Sources};
use store::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use work::{Budget, MemoryPool};

use super::known::KnownCatalogs;
use crate::{Catalog, MirrorSettings, PollError, PollMetrics, PollProgress, SourceLimits};

/// Polls catalogs and publishes them to one store.
pub struct Mirror {
    images: Sources,
    pub(super) store: Arc<dyn Store>,
    pub(super) settings: MirrorSettings,
    memory: MemoryPool,
    rendering: Arc<Semaphore>,
    resolving: Semaphore,
    pub(super) progress: Arc<PollProgress>,
    pub(super) metrics: PollMetrics,
    pub(super) known: KnownCatalogs,
    /// Time at which this mirror was made. Its process has begun no pull before.
    pub(super) started: SystemTime,
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
        // One pool and one space for all catalogs, so that the limits hold for the process.
        let memory = MemoryPool::new(settings.limits.memory_bytes);
        let space = DownloadSpace::new(settings.limits.download_bytes);
        metrics
            .budgets
            .get_or_init(|| (memory.clone(), space.clone()));
        let started = (settings.env.clock)();
        let progress = Arc::<PollProgress>::default();
        let images = images.with_settings(|images| {
            images.download_space = space;
            images.progress = progress.pull.clone();
        });
        Self {
            images,
            store,
            memory,
            rendering: Arc::new(Semaphore::new(settings.side_by_side.max(1))),
            resolving: Semaphore::new(settings.resolves.max(1)),
            settings,
            progress,
            metrics,
            known: KnownCatalogs::default(),
            started,
        }
    }

    /// Trusts these CA bundles for registries from now on, in place of those before.
    ///
    /// # Errors
    /// CA files that cannot be used. Then nothing has changed.
    pub fn trust_ca_files(&self, ca_files: &[PathBuf]) -> Result<(), source::Error> {
        self.images.trust_ca_files(ca_files)
    }

    /// Returns the progress of all polls.
    pub fn progress(&self) -> Arc<PollProgress> {
        self.progress.clone()
    }

    /// Returns the limits of a catalog: its own, or those for catalogs without.
    pub(super) fn limits<'c>(&'c self, catalog: &'c Catalog) -> &'c SourceLimits {
        catalog.limits.as_ref().unwrap_or(&self.settings.limits)
    }

    /// Returns the reader of the sources of a catalog, with its `own` limits, if it has some.
    pub(super) fn images(&self, own: Option<&SourceLimits>) -> Sources {
        let images = self.images.clone();
        let time = own.unwrap_or(&self.settings.limits).pull_time;
        // Changed settings are a copy, which the poll of an unchanged catalog need not make.
        if own.is_none() && time <= images.settings.pull_timeout {
            return images;
        }
        images.with_settings(|images| {
            // The limit of the source alone would end a pull that is given more time.
            images.pull_timeout = images.pull_timeout.max(time);
            if let Some(limits) = own {
                images.limits = limits.image.clone();
            }
        })
    }

    /// Returns a budget for one pull within these limits. Its memory is that of all catalogs.
    pub(super) fn budget(&self, limits: &SourceLimits) -> Budget {
        Budget::new(limits.catalog.steps, self.memory.clone())
    }

    /// Returns the digest that a source has now. A pinned digest needs no request, and no turn.
    pub(super) async fn resolve(
        &self,
        images: &Sources,
        source: &Source,
    ) -> Result<Digest, PollError> {
        if let Some(pinned) = source.pinned() {
            return Ok(pinned.clone());
        }
        let permit = self.resolving.acquire().await;
        let _permit = permit.expect("the semaphore is never closed");
        Ok(images.resolve(source).await?)
    }

    /// Waits for one of the places of `side_by_side`.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        self.places(1).await
    }

    /// Waits for all of the places of `side_by_side`, so that nothing else is pulled meanwhile.
    pub(super) async fn all_places(&self) -> OwnedSemaphorePermit {
        self.places(self.settings.side_by_side.max(1)).await
    }

    async fn places(&self, count: usize) -> OwnedSemaphorePermit {
        let permits = count.try_into().unwrap_or(u32::MAX);
        let permit = self.rendering.clone().acquire_many_owned(permits).await;
        permit.expect("the semaphore is never closed")
    }
}
