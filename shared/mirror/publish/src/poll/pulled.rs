//! Sources that are pulled, read and rendered.

use std::sync::Arc;
use std::time::Duration;

use model::{EmptyLayers, Snapshot};
use render::{ChunkLines, RenderSettings, Renderer, Rendering, StoredShards};
use source::Sources;
use store::Store;
use work::{Budget, run};

use super::fetched::{Fetched, PulledRevision};
use super::mirror::Mirror;
use super::pull::{PublishedShards, RenderSink, known_chunks};
use crate::{PollError, PollProgress, SourceLimits};

/// Image that was read to its end.
pub(super) struct ReadImage {
    pub(super) rendering: Rendering,
    /// Layers that hold no FBC. Those of earlier images are forgotten, so the list never grows
    /// beyond one image's.
    pub(super) empty_layers: EmptyLayers,
}

/// Reader of the content of one catalog, which renders it.
pub(super) struct ContentReader {
    pub(super) images: Sources,
    pub(super) store: Arc<dyn Store>,
    /// Limits of the catalog, and the budget of the poll.
    pub(super) settings: RenderSettings,
    pub(super) progress: Arc<PollProgress>,
    /// Time that the pull of the catalog's own image may wait for its registry.
    pub(super) registry_wait: Option<Duration>,
    /// Chunks of the last image; `None` if this one's are not hashed.
    pub(super) chunks: Option<ChunkLines>,
}

impl ContentReader {
    /// Creates a reader with the limits of a catalog. Chunks are not hashed.
    pub(super) fn new(
        mirror: &Mirror,
        limits: &SourceLimits,
        images: Sources,
        budget: Budget,
    ) -> Self {
        Self {
            images,
            store: mirror.store.clone(),
            settings: RenderSettings {
                budget,
                limits: limits.catalog,
                ..mirror.settings.render.clone()
            },
            progress: mirror.progress(),
            registry_wait: mirror.settings.registry_wait,
            chunks: None,
        }
    }

    /// Returns the shards of a published state, which the next one resembles, with what is known of
    /// their chunks.
    pub(super) async fn published_shards(&self, base: Option<&Snapshot>) -> PublishedShards {
        let mut shards = PublishedShards::new(self.store.clone(), base, base);
        if let Some(chunks) = &self.chunks {
            shards.chunks = Some(known_chunks(&*self.store, chunks, base).await);
        }
        shards
    }

    /// Starts a renderer that uses the shards of `stored` again.
    pub(super) fn renderer(&self, stored: impl StoredShards + 'static) -> Renderer {
        Renderer::start(self.settings.clone(), Arc::new(stored))
    }

    /// Reads an image, from its copy on disk if there is one, and renders its files as they stream
    /// by. Layers in `empty` are not fetched. Fails if the registry takes longer than `wait`.
    pub(super) async fn read(
        &self,
        revision: &PulledRevision<'_>,
        empty: &EmptyLayers,
        renderer: Renderer,
        wait: Option<Duration>,
        fetched: &mut Fetched,
    ) -> Result<ReadImage, PollError> {
        let source = fetched.source(revision);
        let sink = RenderSink::new(renderer, self.progress.clone());
        let images = self
            .images
            .clone()
            .with_settings(|images| images.registry_wait = wait);
        let (sink, pull) = images.read(source, &revision.digest, empty, sink).await?;
        fetched.add(&pull);
        let rendering = run(self.settings.budget.clone(), move || sink.finish()).await??;
        Ok(ReadImage {
            rendering,
            empty_layers: pull.empty_layers,
        })
    }
}
