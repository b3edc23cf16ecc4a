use std::{
    io::{self, Read},
    sync::Arc,
};

use model::{EmptyLayers, Snapshot};
use render::{RenderError, Renderer, Rendering, StopFlag};
use source::{Digest, FileSink, Source, Sources};

use super::{once::Poll, stored_shards::PublishedShards};
use crate::{Catalog, Mirror, PollError, PollProgress, Report};

/// A rendered image, and what was learned of its layers.
pub(crate) struct PulledCatalog {
    pub(crate) rendering: Rendering,
    pub(crate) empty_layers: EmptyLayers,
}

/// Pulls and renders one image. Files are rendered as they stream by.
pub(crate) async fn pull(
    mirror: &Mirror,
    catalog: &Catalog,
    digest: &Digest,
    published: Arc<PublishedShards>,
    work: PullWork<'_>,
) -> Result<PulledCatalog, PollError> {
    let PullWork {
        images,
        from,
        known,
        stop,
        report,
    } = work;
    let renderer = Renderer::start(mirror.render_settings(catalog, stop), published);
    let sink = RenderSink::new(renderer, mirror.progress());
    let (sink, pull) = images.read(&from, digest, &skippable_layers(known), sink).await?;
    report.bytes_pulled += pull.bytes;
    report.layers_fetched += pull.layers_fetched;
    report.layers_skipped += pull.layers_skipped;
    // Layers of earlier images are forgotten, so the list never grows beyond one image's.
    let empty = pull.empty_layers.digests.iter().map(ToString::to_string);
    Ok(PulledCatalog {
        empty_layers: EmptyLayers {
            root: pull.empty_layers.root.clone(),
            empty: empty.collect(),
        },
        rendering: tokio::task::spawn_blocking(move || sink.finish()).await??,
    })
}

impl Poll<'_> {
    /// Pulls and renders the image of the catalog. Shards of `usable` are used again.
    pub(crate) async fn pull(
        &mut self,
        source: &Source,
        digest: &Digest,
        usable: Option<&Snapshot>,
        stop: &StopFlag,
    ) -> Result<Rendering, PollError> {
        let published = PublishedShards::new(self.mirror.store.clone(), usable);
        let known = self.empty_layers.clone().unwrap_or_default();
        let images = self.mirror.images(self.catalog);
        let (images, from) = match self.copies.get(digest) {
            Some(copy) => (images, copy.source()),
            None => (
                images.with_registry_wait(self.mirror.settings.registry_wait),
                source.clone(),
            ),
        };
        let work = PullWork {
            images,
            from,
            known: &known,
            stop,
            report: self.report,
        };
        let pulled = match pull(self.mirror, self.catalog, digest, Arc::new(published), work).await {
            Err(PollError::Image(error)) if error.is_slow_registry() => {
                return Err(PollError::SlowRegistry(digest.clone()));
            }
            pulled => pulled?,
        };
        self.empty_layers = Some(pulled.empty_layers);
        Ok(pulled.rendering)
    }
}

/// The place to pull an image from, the report of the pull and the flag that ends its work.
pub(crate) struct PullWork<'a> {
    pub(crate) images: Sources,
    /// Source of the catalog, or a copy of its image.
    pub(crate) from: Source,
    /// Layers that need not be fetched.
    pub(crate) known: &'a EmptyLayers,
    pub(crate) stop: &'a StopFlag,
    pub(crate) report: &'a mut Report,
}

/// Ends work on other threads when it is dropped, as a future is whose time is over. Threads would go on without it, and hold
/// memory that the next poll needs.
#[derive(Debug, Default)]
pub(crate) struct StopOnDrop(pub(crate) StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Renders the files of an image as they stream by.
pub struct RenderSink {
    renderer: Renderer,
    progress: Arc<PollProgress>,
}

impl RenderSink {
    /// Feeds `renderer`, and counts files and bytes in `progress`.
    pub const fn new(renderer: Renderer, progress: Arc<PollProgress>) -> Self {
        Self { renderer, progress }
    }

    /// Returns the rendering, once the image was read to its end.
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
        #[cfg(feature = "testing")]
        abort_on_marker(path);
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

/// Kills the process at a file whose path contains the text of `CATALOG_MIRROR_TEST_ABORT`, as an unknown fault of a parser
/// would.
#[cfg(feature = "testing")]
fn abort_on_marker(path: &str) {
    if std::env::var("CATALOG_MIRROR_TEST_ABORT").is_ok_and(|marker| path.contains(&marker)) {
        std::process::abort();
    }
}

pub(crate) fn skippable_layers(known: &EmptyLayers) -> source::SkippableLayers {
    // A digest that cannot be parsed is left out: at worst its layer is fetched again.
    let digests = known.empty.iter().filter_map(|digest| digest.parse().ok()).collect();
    source::SkippableLayers {
        root: known.root.clone(),
        digests,
    }
}
