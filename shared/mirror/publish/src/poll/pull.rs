//! Pulls one image: from its registry, or from a copy on disk.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::TryStreamExt;
use model::{EmptyLayers, Encoding, Index, Kind, ObjectDigest, Sha256, Snapshot, text::chain};
use render::{KnownChunks, PublishedGzip, RenderError, Renderer, Rendering, StoredShards};
use source::{Digest, FileSink, Source};
use store::{ReadError, Store, StoreExt, read_object, read_stored};
use tokio::runtime::Handle;
use tokio_util::io::{StreamReader, SyncIoBridge};
use work::{Budget, run};

use super::composing::{compose_inputs, log_notices};
use super::facts::NewContent;
use super::once::Poll;
use crate::{CatalogSource, PollError, PollProgress, Transaction};

/// Maximum number of Metas of a published state whose chunks count as known. The entries of its
/// index are held beside the new ones: 15 MB at most. The largest real catalogs have 20,000 Metas.
const KNOWN_METAS: u64 = 100_000;

/// Pulls one image, from its copy on disk if there is one, and renders it. Layers in `empty` are
/// not fetched. Files are rendered as they stream by. Returns what was learned of its layers too.
/// Fails if the registry takes longer than `wait`.
pub(crate) async fn pull(
    poll: &mut Poll<'_>,
    source: &Source,
    digest: &Digest,
    empty: &EmptyLayers,
    renderer: Renderer,
    wait: Option<Duration>,
) -> Result<(Rendering, EmptyLayers), PollError> {
    let budget = renderer.budget().clone();
    let sink = RenderSink::new(renderer, poll.mirror.progress());
    let images = poll.mirror.images(poll.catalog);
    let images = images.with_settings(|images| images.registry_wait = wait);
    let copied = poll.copies.get(digest);
    let from = copied.map_or(source, |copy| &copy.source);
    let (sink, pull) = images.read(from, digest, empty, sink).await?;
    poll.report.bytes_pulled += pull.traffic.bytes;
    poll.report.layers_fetched += pull.layers_fetched;
    poll.report.layers_skipped += pull.layers_skipped;
    let rendering = run(budget, move || sink.finish()).await??;
    // Layers of earlier images are forgotten, so the list never grows beyond one image's.
    Ok((rendering, pull.empty_layers))
}

/// Pulls or composes the content. Shards of `usable` are used again. Fails with the error of a slow
/// registry if it is too slow to wait for.
pub(crate) async fn read_content(
    poll: &mut Poll<'_>,
    transaction: &Transaction,
    digest: &Digest,
    usable: Option<&Snapshot>,
    budget: &Budget,
) -> Result<NewContent, PollError> {
    let source = match &poll.catalog.source {
        CatalogSource::Pulled(pulled) => &pulled.source,
        CatalogSource::Composed(composed) => {
            let (content, explanation) =
                compose_inputs(poll, composed, Some(transaction), usable, budget).await?;
            log_notices(&explanation);
            return Ok(content);
        }
    };
    let mut published = PublishedShards::new(poll.mirror.store.clone(), usable, usable);
    if !poll.options.is_last {
        published.chunks = Some(known_chunks(poll, usable).await);
    }
    let renderer = poll.renderer(published, budget);
    let empty = poll.empty_layers.clone().unwrap_or_default();
    let wait = poll.mirror.settings.registry_wait;
    let (rendering, empty_layers) = pull(poll, source, digest, &empty, renderer, wait).await?;
    poll.empty_layers = Some(empty_layers);
    let chunks = (poll.mirror.limits(poll.catalog).catalog, rendering.chunks());
    poll.mirror
        .known(&poll.catalog.name, |known| known.chunks = Some(chunks));
    let inputs = Vec::new();
    Ok(NewContent { rendering, inputs })
}

/// Returns the chunks of the last pull by this process whose Shards `base` has. They only save
/// work.
async fn known_chunks(poll: &Poll<'_>, base: Option<&Snapshot>) -> KnownChunks {
    let limits = poll.mirror.limits(poll.catalog).catalog;
    let chunks = poll
        .mirror
        .known(&poll.catalog.name, |known| known.chunks.clone());
    let chunks = chunks.filter(|(kept, _)| *kept == limits);
    let base = base.filter(|base| base.metas <= KNOWN_METAS);
    let (Some((_, chunks)), Some(base)) = (chunks, base) else {
        return KnownChunks::new();
    };
    let index = match read_stored::<Index<'_>>(&*poll.mirror.store, &base.index).await {
        Ok(index) => index,
        Err(error) => {
            tracing::warn!(error = chain(&error), "cannot read the published index");
            return KnownChunks::new();
        }
    };
    let shards = base.shards().zip(index.shards);
    let same = shards.filter(|(shard, indexed)| shard.lines.sha256 == indexed.lines);
    let same = same.map(|(shard, indexed)| (shard.clone(), indexed.metas.into_owned()));
    render::known_chunks(chunks, same)
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
        self.progress.files.fetch_add(1, Ordering::Relaxed);
        self.progress.bytes.fetch_add(size, Ordering::Relaxed);
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

/// Kills the process at a file whose path contains the text of `CATALOG_MIRROR_TEST_ABORT`, as an
/// unknown fault of a parser would.
#[cfg(feature = "testing")]
fn abort_on_marker(path: &str) {
    if std::env::var("CATALOG_MIRROR_TEST_ABORT").is_ok_and(|marker| path.contains(&marker)) {
        std::process::abort();
    }
}

/// Copies to disk what must not be read from a registry while a permit is held.
pub(crate) async fn copy_first(poll: &mut Poll<'_>, digest: &Digest) -> Result<(), PollError> {
    // No other catalog is pulled while a suspect is read, so a slow registry would stop them all.
    if poll.is_suspect(digest) {
        copy_image(poll, digest).await?;
    }
    let Some(inputs) = poll.inputs.clone() else {
        return Ok(());
    };
    // A composition reads its inputs one after the other, each to its end.
    for input in inputs.pulled() {
        let source = &input.pulled.source;
        let copied = copy(poll, source, &input.digest, &EmptyLayers::default()).await;
        copied.map_err(|error| error.at(&input.place))?;
    }
    Ok(())
}

/// Copies the image of the catalog to disk.
pub(crate) async fn copy_image(poll: &mut Poll<'_>, digest: &Digest) -> Result<(), PollError> {
    let Some(pulled) = poll.catalog.source.pulled() else {
        return Ok(());
    };
    let empty = poll.empty_layers.clone().unwrap_or_default();
    copy(poll, &pulled.source, digest, &empty).await
}

/// Copies the image of a catalog or of an input from its registry to disk, unless that was done
/// already. Layers in `empty` are not fetched.
async fn copy(
    poll: &mut Poll<'_>,
    source: &Source,
    digest: &Digest,
    empty: &EmptyLayers,
) -> Result<(), PollError> {
    let Source::Registry { reference, .. } = source else {
        return Ok(());
    };
    if poll.copies.contains_key(digest) {
        return Ok(());
    }
    tracing::info!(%digest, "the image is copied to disk first");
    let images = poll.mirror.images(poll.catalog);
    let download = images.download(reference, digest, empty).await?;
    poll.report.bytes_pulled += download.traffic.bytes;
    poll.copies.insert(digest.clone(), download);
    Ok(())
}

/// Shards of published Snapshots, for the render workers.
pub struct PublishedShards {
    store: Arc<dyn Store>,
    runtime: Handle,
    /// Stored object by the hash of the lines.
    shards: HashMap<Sha256, ObjectDigest>,
    /// State whose `all.json.gz` the next one resembles.
    base: Option<Snapshot>,
    /// Chunks that need not be parsed; `None` if they are not hashed.
    chunks: Option<KnownChunks>,
}

impl PublishedShards {
    /// Creates a loader of the Shards of some states, and of the segments of `base`. Must be called
    /// inside a runtime.
    pub fn new<'a>(
        store: Arc<dyn Store>,
        snapshots: impl IntoIterator<Item = &'a Snapshot>,
        base: Option<&Snapshot>,
    ) -> Self {
        let shards = snapshots.into_iter().flat_map(Snapshot::shards);
        let shards = shards
            .map(|shard| (shard.lines.sha256, shard.stored))
            .collect();
        Self {
            store,
            runtime: Handle::current(),
            shards,
            base: base.cloned(),
            chunks: None,
        }
    }

    /// Reads the index of one of the states. Blocks.
    pub(crate) fn index(&self, stored: &ObjectDigest) -> Result<Index<'static>, ReadError> {
        self.runtime.block_on(read_stored(&*self.store, stored))
    }
}

impl StoredShards for PublishedShards {
    fn stored(&self, lines: &Sha256) -> Option<ObjectDigest> {
        self.shards.get(lines).copied()
    }

    fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    fn load(&self, stored: &ObjectDigest) -> io::Result<Vec<u8>> {
        let object = stored.with_kind(Kind::Package);
        let read = self.runtime.block_on(read_object(&*self.store, &object));
        read.map(Into::into).map_err(io::Error::other)
    }

    fn gzip(&self) -> Option<PublishedGzip> {
        let base = self.base.as_ref()?;
        let object = base.all.gzip.with_kind(Kind::All(Encoding::Gzip));
        let opened = self
            .runtime
            .block_on(self.store.open(&object.key(), None))
            .ok()?;
        let bytes = StreamReader::new(opened.body.map_err(io::Error::other));
        Some(PublishedGzip {
            sha256: object.digest.sha256,
            shards: base
                .shards()
                .map(|shard| (shard.name.clone(), shard.lines))
                .collect(),
            bytes: Box::new(SyncIoBridge::new_with_handle(bytes, self.runtime.clone())),
        })
    }

    fn known_chunks(&self) -> Option<&KnownChunks> {
        self.chunks.as_ref()
    }
}
