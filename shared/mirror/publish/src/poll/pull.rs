//! Input of rendering, from a pull and from published states.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::TryStreamExt;
use model::{Encoding, Index, Kind, ObjectDigest, Sha256, Snapshot, text::Chain};
use render::{
    ChunkLines, KnownChunks, PublishedGzip, RenderError, Renderer, Rendering, StoredShards,
};
use source::FileSink;
use store::{ReadError, Store, StoreExt, read_object, read_stored};
use tokio::runtime::Handle;
use tokio_util::io::{StreamReader, SyncIoBridge};

use crate::PollProgress;

/// Maximum number of Metas of a published state whose chunks count as known. The entries of its
/// index are held beside the new ones: 15 MB at most. The largest real catalogs have 20,000 Metas.
const KNOWN_METAS: u64 = 100_000;

/// Returns the chunks of an earlier pull whose Shards `base` has. They only save work.
pub(super) async fn known_chunks(
    store: &dyn Store,
    chunks: &ChunkLines,
    base: Option<&Snapshot>,
) -> KnownChunks {
    let Some(base) = base.filter(|base| base.metas <= KNOWN_METAS && !chunks.is_empty()) else {
        return KnownChunks::new();
    };
    let index = match read_stored::<Index<'_>>(store, &base.index).await {
        Ok(index) => index,
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "cannot read the published index");
            return KnownChunks::new();
        }
    };
    let same = base
        .shards()
        .zip(index.shards)
        .filter(|(shard, indexed)| shard.lines.sha256 == indexed.lines)
        .map(|(shard, indexed)| (shard.clone(), indexed.metas.into_owned()));
    render::known_chunks(chunks.clone(), same)
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

/// Shards of published Snapshots, for the render workers.
pub struct PublishedShards {
    store: Arc<dyn Store>,
    runtime: Handle,
    /// Stored object by the hash of the lines.
    shards: HashMap<Sha256, ObjectDigest>,
    /// State whose `all.json.gz` the next one resembles.
    base: Option<Snapshot>,
    /// Chunks that need not be parsed; `None` if they are not hashed.
    pub(super) chunks: Option<KnownChunks>,
}

impl PublishedShards {
    /// Creates a loader of the Shards of some states, and of the segments of `base`. Must be called
    /// inside a runtime.
    pub fn new<'a>(
        store: Arc<dyn Store>,
        snapshots: impl IntoIterator<Item = &'a Snapshot>,
        base: Option<&Snapshot>,
    ) -> Self {
        let shards = snapshots
            .into_iter()
            .flat_map(Snapshot::shards)
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
        if base.segments.is_empty() {
            return None;
        }
        let key = base.all.gzip.with_kind(Kind::All(Encoding::Gzip)).key();
        let opened = self.runtime.block_on(self.store.open(&key, None));
        let body = StreamReader::new(opened.ok()?.body.map_err(io::Error::other));
        let bytes = SyncIoBridge::new_with_handle(body, self.runtime.clone());
        PublishedGzip::new(base, Box::new(bytes))
    }

    fn known_chunks(&self) -> Option<&KnownChunks> {
        self.chunks.as_ref()
    }
}
