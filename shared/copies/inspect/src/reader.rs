use std::sync::Arc;

use publish::{RenderSink, SourceLimits};
use render::{NoStoredShards, RenderSettings, Renderer, Rendering};
use source::{EmptyLayers, Source, Sources};
use work::{Budget, MemoryPool};

use crate::{InspectError, Validation};

/// Level at which shards are compressed that are only held until they are used.
pub(crate) const SHARD_LEVEL: i32 = 1;

/// Reader of sources that are not published.
#[derive(Clone)]
pub struct SourceReader {
    /// Reader of images, archives, repositories and folders.
    pub sources: Sources,
    /// Limits of a catalog.
    pub limits: SourceLimits,
}

impl SourceReader {
    /// Reads the catalog of a source.
    ///
    /// # Errors
    /// A source that cannot be read, and a content that is not valid or exceeds a limit.
    pub async fn render(&self, source: &Source) -> Result<Rendering, InspectError> {
        let settings = RenderSettings::default();
        self.read(source, settings, |sink| Ok(sink.finish()?)).await
    }

    /// Validates the catalog of a source. Each finding has its place in the files.
    ///
    /// # Errors
    /// As [`Self::render`], but a document that is not valid is a finding.
    pub async fn validate(&self, source: &Source) -> Result<Validation, InspectError> {
        let settings = RenderSettings {
            positions: true,
            ..RenderSettings::default()
        };
        self.read(source, settings, Validation::of_sink).await
    }

    /// Reads all files of a source without a store, and runs `end` on a blocking thread.
    async fn read<T: Send + 'static>(
        &self,
        source: &Source,
        settings: RenderSettings,
        end: impl FnOnce(RenderSink) -> Result<T, InspectError> + Send + 'static,
    ) -> Result<T, InspectError> {
        let memory = MemoryPool::new(self.limits.memory_bytes);
        let budget = Budget::new(self.limits.catalog.steps, memory);
        let digest = self.sources.resolve(source).await?;
        let settings = RenderSettings {
            shard_level: SHARD_LEVEL,
            limits: self.limits.catalog,
            budget: budget.clone(),
            ..settings
        };
        let renderer = Renderer::start(settings, Arc::new(NoStoredShards));
        let sink = RenderSink::new(renderer, Arc::default());
        let none = EmptyLayers::default();
        let (sink, _) = self.sources.read(source, &digest, &none, sink).await?;
        work::run(budget, move || end(sink)).await?
    }
}
