use std::{
    io::{self, Read},
    sync::Arc,
};

use image::{Digest, EmptyLayers, FileSink};
use layout::{Key, Layers};
use render::{RenderError, Renderer, Rendering};
use store::{Condition, ReadError, Store, StoreExt};
use telemetry::chain;

use crate::{Catalog, Mirror, PollError, Progress, Report, published::PublishedShards};

/// Pulls and renders one image. Files are rendered as they stream by.
pub(crate) async fn pull(
    mirror: &Mirror,
    catalog: &Catalog,
    digest: &Digest,
    published: Arc<PublishedShards>,
    report: &mut Report,
) -> Result<Rendering, PollError> {
    let key = Key::Layers(catalog.name.clone());
    let layers = known_layers(&*mirror.store, &key).await?;
    let renderer = Renderer::start(mirror.settings.render.clone(), published);
    let sink = RenderSink::new(renderer, mirror.progress());
    let (sink, pull) = mirror
        .images
        .read(&catalog.source, digest, &parse(&layers), sink)
        .await?;
    report.bytes_pulled += pull.bytes;
    report.layers_fetched += pull.layers_fetched;
    report.layers_skipped += pull.layers_skipped;
    remember(&*mirror.store, &key, &layers, &pull.empty_layers).await;
    Ok(tokio::task::spawn_blocking(move || sink.finish()).await??)
}

/// Renders the files of an image as they stream by.
pub struct RenderSink {
    renderer: Renderer,
    progress: Arc<Progress>,
}

impl RenderSink {
    /// Feeds `renderer` and tells `progress`.
    pub const fn new(renderer: Renderer, progress: Arc<Progress>) -> Self {
        Self { renderer, progress }
    }

    /// What was rendered, once the image was read to its end.
    ///
    /// # Errors
    /// As [`Renderer::finish`].
    pub fn finish(self) -> Result<Rendering, RenderError> {
        self.renderer.finish()
    }
}

impl FileSink for RenderSink {
    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> io::Result<()> {
        self.progress.file(size);
        self.renderer.file(path, content)
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.renderer.link(path, target);
        Ok(())
    }

    fn excludes(&self, path: &str) -> bool {
        self.renderer.excludes(path)
    }
}

/// What is remembered saves work and is never needed.
async fn known_layers(store: &dyn Store, key: &Key) -> Result<Layers, PollError> {
    match store.read_document(key).await {
        Ok(found) => Ok(found.map(|(layers, _)| layers).unwrap_or_default()),
        Err(ReadError::Store(error)) => Err(error.into()),
        Err(_) => Ok(Layers::default()),
    }
}

fn parse(layers: &Layers) -> EmptyLayers {
    let digests = layers.empty.iter().filter_map(|digest| digest.parse().ok()).collect();
    EmptyLayers {
        root: layers.root.clone(),
        digests,
    }
}

/// Layers of earlier images are forgotten, so the list never grows beyond one image's.
async fn remember(store: &dyn Store, key: &Key, before: &Layers, empty: &EmptyLayers) {
    if empty.digests.is_empty() && before.empty.is_empty() {
        return;
    }
    let layers = Layers {
        root: empty.root.clone(),
        empty: empty.digests.iter().map(ToString::to_string).collect(),
    };
    if layers == *before {
        return;
    }
    if let Err(error) = store.write_document(key, &layers, Condition::Always).await {
        tracing::warn!(%key, error = chain(&error), "cannot remember the empty layers");
    }
}
