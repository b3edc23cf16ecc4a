use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use model::{Content, Encoding, Key, Kind, ObjectRef, Sha256, ShardRef, Snapshot};

use crate::{
    cache::BodyKey,
    catalogs::PublishedCatalogs,
    decode::decode_all,
    error::ReaderError,
    index::MetaFilter,
    objects::Extent,
    state::PublishedState,
    stream::{self as chunks, Chunks, exact, pick},
};

/// Maximum number of Shards that are read one by one. A query for one package reads one or two; one that hits more reads
/// the whole catalog instead, if that is less to read.
const SHARDS_ONE_BY_ONE: usize = 4;

/// Lines of a published state, described before any of them is read.
#[derive(Debug, Clone)]
pub enum PublishedLines {
    /// All lines of a zstd object.
    Stored {
        /// The object.
        object: ObjectRef,
        /// Its lines.
        lines: Content,
    },
    /// Lines that a filter selects.
    Selected(SelectedLines),
}

/// Some lines of a published state.
#[derive(Debug, Clone)]
pub struct SelectedLines {
    state: PublishedState,
    snapshot: Arc<Snapshot>,
    /// Positions of the lines in `all.json`, in bytes, ascending.
    ranges: Arc<[Range<u64>]>,
    length: u64,
    identity: Sha256,
}

/// The selected lines that one Shard holds.
struct ShardLines {
    shard: ShardRef,
    /// Positions of the lines in the uncompressed Shard, in bytes, ascending.
    ranges: Vec<Range<u64>>,
}

impl PublishedLines {
    /// Returns the lines of one Shard.
    pub const fn of_shard(shard: &ShardRef) -> Self {
        Self::Stored {
            object: shard.stored.with_kind(Kind::Package),
            lines: shard.lines,
        }
    }

    /// Returns the number of bytes of all lines together.
    pub const fn length(&self) -> u64 {
        match self {
            Self::Stored { lines, .. } => lines.size,
            Self::Selected(selected) => selected.length,
        }
    }

    /// Returns a hash that identifies the lines: of their bytes, or of the content and the filter.
    pub const fn identity(&self) -> Sha256 {
        match self {
            Self::Stored { lines, .. } => lines.sha256,
            Self::Selected(selected) => selected.identity,
        }
    }

    /// Returns the key of an object that holds all of them, for errors.
    pub fn key(&self) -> Key {
        match self {
            Self::Stored { object, .. } => object.key(),
            Self::Selected(selected) => selected.state.current().all.zstd.key(),
        }
    }

    /// Returns the size of the largest body that is kept when they are read, in bytes.
    pub fn largest(&self) -> u64 {
        match self {
            Self::Stored { object, lines } => lines.size.max(object.digest.size),
            Self::Selected(selected) => selected.length,
        }
    }
}

impl PublishedState {
    /// Returns all lines. They are read from the zstd object, the smallest to read and the fastest to decompress.
    pub fn whole(&self) -> PublishedLines {
        let current = self.current();
        PublishedLines::Stored {
            object: current.all.zstd,
            lines: Content {
                sha256: current.content_hash,
                size: current.size,
            },
        }
    }

    /// Finds the lines that match a filter, which is not empty.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`].
    pub async fn select(&self, filter: &MetaFilter) -> Result<PublishedLines, ReaderError> {
        let ranges = self.index().await?.select(filter);
        Ok(PublishedLines::Selected(SelectedLines {
            length: ranges.iter().map(|range| range.end - range.start).sum(),
            identity: identity(self.current().content_hash, filter),
            ranges: ranges.into(),
            state: self.clone(),
            snapshot: self.snapshot().await?,
        }))
    }
}

impl PublishedCatalogs {
    /// Streams lines. The first read has happened when this returns.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`], also as an item of the stream.
    pub async fn lines(&self, lines: &PublishedLines, extent: Extent) -> Result<Chunks, ReaderError> {
        match lines {
            PublishedLines::Stored { object, lines } => self.decoded(object, lines.size, extent).await,
            PublishedLines::Selected(selected) => {
                let chunks = self.selected(selected).await?;
                Ok(exact(chunks, selected.length, lines.key()))
            }
        }
    }

    /// Reads lines into memory. The stored object is kept there, the lines are not.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`].
    pub async fn read_lines(&self, lines: &PublishedLines) -> Result<Bytes, ReaderError> {
        match lines {
            PublishedLines::Stored { object, lines } => self.read_decoded(object, lines.size).await,
            PublishedLines::Selected(selected) => {
                let chunks = self.lines(lines, Extent::Prefix).await?;
                store::collect(chunks, selected.length).await
            }
        }
    }

    /// Streams the lines of one Shard, for readers that may stop before the end. Small ones are kept in memory.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`], also as an item of the stream.
    pub async fn cached_shard(&self, shard: &ShardRef) -> Result<Chunks, ReaderError> {
        let (object, lines) = (shard.stored.with_kind(Kind::Package), shard.lines);
        if self.keeps(lines.size.max(object.digest.size)) {
            let key = BodyKey::Made(lines.sha256, Encoding::Identity);
            Ok(chunks::once(
                self.body(&key, self.read_decoded(&object, lines.size)).await?,
            ))
        } else {
            self.decoded(&object, lines.size, Extent::Prefix).await
        }
    }

    async fn read_decoded(&self, object: &ObjectRef, size: u64) -> Result<Bytes, ReaderError> {
        let stored = self.cached_object(object).await?;
        let decoded = self.run(size, move || decode_all(&stored, size)).await;
        decoded.map_err(ReaderError::coding(&object.key()))
    }

    /// Streams selected lines from the Shards that hold them or, if these are most of them, from one read of the whole.
    async fn selected(&self, lines: &SelectedLines) -> Result<Chunks, ReaderError> {
        let snapshot = &lines.snapshot;
        let parts = split(snapshot.shards(), &lines.ranges);
        let stored: u64 = parts.iter().map(|part| part.shard.stored.size).sum();
        // A query by schema hits every package. Reading hundreds of shards one after the other takes longer than the
        // whole catalog.
        if parts.len() > SHARDS_ONE_BY_ONE && stored > snapshot.all.zstd.size / 2 {
            let whole = &lines.state.current().all.zstd;
            let whole = self.decoded(whole, snapshot.size, Extent::Prefix).await?;
            return Ok(pick(whole, lines.ranges.iter().cloned()));
        }
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else {
            return Ok(stream::empty().boxed());
        };
        // Opened now, so that a failure of the store still gets its status.
        let first = pick(self.cached_shard(&first.shard).await?, first.ranges);
        let catalogs = self.clone();
        let others = stream::iter(parts).then(move |part| {
            let catalogs = catalogs.clone();
            async move { Ok::<_, ReaderError>(pick(catalogs.cached_shard(&part.shard).await?, part.ranges)) }
        });
        Ok(first.chain(others.try_flatten()).boxed())
    }
}

/// Returns a hash that no other content or filter has: each text is preceded by its length.
fn identity(content: Sha256, filter: &MetaFilter) -> Sha256 {
    let mut text = Vec::with_capacity(160);
    text.extend_from_slice(content.as_bytes());
    // With the lengths, (`a`, `bc`) and (`ab`, `c`) are different texts.
    for filter in [&filter.schema, &filter.package, &filter.name] {
        text.extend_from_slice(&(filter.len() as u64).to_be_bytes());
        text.extend_from_slice(filter.as_bytes());
    }
    Sha256::of(&text)
}

/// Splits ranges of `all.json` into ranges of the Shards that it consists of.
fn split<'a>(shards: impl Iterator<Item = &'a ShardRef>, ranges: &[Range<u64>]) -> Vec<ShardLines> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    for shard in shards {
        let end = start + shard.lines.size;
        let mut own = Vec::new();
        while let Some(range) = ranges.get(at).filter(|range| range.start < end) {
            own.push(range.start.max(start) - start..range.end.min(end) - start);
            if range.end > end {
                break;
            }
            at += 1;
        }
        if !own.is_empty() {
            parts.push(ShardLines {
                shard: shard.clone(),
                ranges: own,
            });
        }
        start = end;
    }
    parts
}
