use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use model::{Content, Encoding, Key, Kind, ObjectRef, Sha256, ShardRef, Snapshot};

use crate::cache::BodyKey;
use crate::catalogs::PublishedCatalogs;
use crate::error::ReaderError;
use crate::index::MetaFilter;
use crate::objects::{Extent, check_size};
use crate::state::PublishedState;
use crate::stream::{self as chunks, CHUNKS_BYTES, Chunks, decoder_memory, exact, pick, small};

/// Maximum number of Shards that are read one by one. A query for one package reads one or two; one
/// that hits more reads the whole catalog instead, if that is less to read.
const SHARDS_ONE_BY_ONE: usize = 4;

/// Lines of a published state, described before any of them is read.
#[derive(Debug, Clone)]
pub struct PublishedLines {
    /// Number of bytes of all lines together.
    pub length: u64,
    /// Hash that identifies the lines: of their bytes, or of the content and the filter.
    pub identity: Sha256,
    /// Zstd object that holds all of them.
    object: ObjectRef,
    /// Lines of the object that a filter selects. `None`: all of them.
    selection: Option<LineSelection>,
}

/// Some lines of a whole catalog.
#[derive(Debug, Clone)]
struct LineSelection {
    snapshot: Arc<Snapshot>,
    /// Positions of the lines in `all.json`, in bytes, ascending.
    ranges: Arc<[Range<u64>]>,
    /// True if the whole catalog is read instead of the Shards: a query by schema hits every
    /// package, and reading hundreds of Shards one after the other takes longer.
    reads_whole: bool,
}

/// Shard that holds some of the selected lines.
struct SelectedShard<'a> {
    shard: &'a ShardRef,
    /// Position of its first line in `all.json`, in bytes.
    start: u64,
    /// Ranges of `all.json` that have lines of it. The first and the last one may have others too.
    ranges: &'a [Range<u64>],
}

impl SelectedShard<'_> {
    /// Returns the positions of the lines in the uncompressed Shard, in bytes, ascending.
    fn own_ranges(&self) -> Vec<Range<u64>> {
        let end = self.start + self.shard.lines.size;
        let ranges = self.ranges.iter();
        ranges
            .map(|range| range.start.max(self.start) - self.start..range.end.min(end) - self.start)
            .collect()
    }
}

impl LineSelection {
    fn new(snapshot: Arc<Snapshot>, ranges: Vec<Range<u64>>) -> Self {
        let mut selection = Self {
            snapshot,
            ranges: ranges.into(),
            reads_whole: false,
        };
        let mut stored = 0;
        let mut count = 0;
        for selected in selection.shards() {
            stored += selected.shard.stored.size;
            count += 1;
        }
        let are_most = stored > selection.snapshot.all.zstd.size / 2;
        selection.reads_whole = count > SHARDS_ONE_BY_ONE && are_most;
        selection
    }

    /// Returns the Shards that hold the lines, in order. It allocates nothing: the memory of an
    /// answer is asked for before any of its work begins.
    fn shards(&self) -> impl Iterator<Item = SelectedShard<'_>> {
        let mut rest = &self.ranges[..];
        let mut end = 0;
        self.snapshot.shards().filter_map(move |shard| {
            let start = end;
            end += shard.lines.size;
            let ranges = &rest[..rest.partition_point(|range| range.start < end)];
            let goes_on = ranges.last().is_some_and(|last| last.end > end);
            rest = &rest[ranges.len() - usize::from(goes_on)..];
            (!ranges.is_empty()).then_some(SelectedShard {
                shard,
                start,
                ranges,
            })
        })
    }

    /// Returns the lines of each Shard that has some.
    fn parts(&self) -> Vec<ShardLines> {
        let mut parts = Vec::new();
        for selected in self.shards() {
            parts.push(ShardLines {
                shard: selected.shard.clone(),
                ranges: selected.own_ranges(),
            });
        }
        parts
    }
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
        Self::of_object(shard.stored.with_kind(Kind::Package), shard.lines)
    }

    const fn of_object(object: ObjectRef, lines: Content) -> Self {
        Self {
            length: lines.size,
            identity: lines.sha256,
            object,
            selection: None,
        }
    }

    /// Returns the key of an object that holds all of them, for errors.
    pub const fn key(&self) -> Key {
        self.object.key()
    }

    /// Returns the size of the largest body that is kept when they are read, in bytes.
    pub fn largest(&self) -> u64 {
        match self.selection {
            None => self.length.max(self.object.digest.size),
            Some(_) => self.length,
        }
    }
}

impl PublishedState {
    /// Returns all lines. They are read from the zstd object, the smallest to read and the fastest
    /// to decompress.
    pub fn whole(&self) -> PublishedLines {
        let current = self.current();
        let lines = Content {
            sha256: current.content_hash,
            size: current.size,
        };
        PublishedLines::of_object(current.all.zstd, lines)
    }

    /// Finds the lines that match a filter, which is not empty.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`].
    pub async fn select(&self, filter: &MetaFilter) -> Result<PublishedLines, ReaderError> {
        let ranges = self.index().await?.select(filter);
        Ok(PublishedLines {
            length: ranges.iter().map(|range| range.end - range.start).sum(),
            identity: identity(self.current().content_hash, filter),
            object: self.current().all.zstd,
            selection: Some(LineSelection::new(self.snapshot().await?, ranges)),
        })
    }
}

impl PublishedCatalogs {
    /// Returns the object from which all lines are decoded, if it is kept in memory.
    pub fn lines_source(&self, lines: &PublishedLines) -> Option<ObjectRef> {
        let selection = lines.selection.as_ref();
        let is_read = selection.is_none_or(|selection| selection.reads_whole);
        (is_read && self.keeps(lines.object.digest.size)).then_some(lines.object)
    }

    /// Returns the memory that [`Self::lines`] takes until its end, in bytes, without its source
    /// and the chunks that it returns.
    pub fn lines_memory(&self, lines: &PublishedLines) -> u64 {
        let Some(selection) = &lines.selection else {
            return decoder_memory(lines.length);
        };
        let positions = selection.ranges.len() * 2 * size_of::<Range<u64>>();
        let read = if selection.reads_whole {
            decoder_memory(selection.snapshot.size)
        } else {
            // One is read after the other.
            let shards = selection.shards();
            let each = shards.map(|selected| self.shard_memory(selected.shard));
            each.max().unwrap_or_default()
        };
        read + positions as u64
    }

    fn shard_memory(&self, shard: &ShardRef) -> u64 {
        let lines = PublishedLines::of_shard(shard);
        if self.keeps(lines.largest()) {
            return lines.length;
        }
        let stored = match self.keeps(lines.object.digest.size) {
            true => lines.object.digest.size,
            false => CHUNKS_BYTES,
        };
        stored + decoder_memory(lines.length)
    }

    /// Streams lines, or a range of their bytes. The first read has happened when this returns.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`], also as an item of the stream.
    pub async fn lines(
        &self,
        lines: &PublishedLines,
        extent: Extent,
    ) -> Result<Chunks, ReaderError> {
        if let Extent::Part(range) = extent {
            let all = Box::pin(self.lines(lines, Extent::Prefix)).await?;
            let length = range.end - range.start;
            return Ok(exact(pick(all, [range]), length, lines.key()));
        }
        let Some(selection) = &lines.selection else {
            return self.decoded(&lines.object, lines.length, extent).await;
        };
        let chunks = self.selected(&lines.object, selection).await?;
        Ok(exact(chunks, lines.length, lines.key()))
    }

    /// Reads lines into memory. The stored object is kept there, the lines are not.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`].
    pub async fn read_lines(&self, lines: &PublishedLines) -> Result<Bytes, ReaderError> {
        if lines.selection.is_none() {
            return self.read_decoded(lines).await;
        }
        let chunks = self.lines(lines, Extent::Prefix).await?;
        store::collect(chunks, lines.length).await
    }

    /// Streams the lines of one Shard, for readers that may stop before the end. Small ones are
    /// kept in memory.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`], also as an item of the stream.
    pub async fn cached_shard(&self, shard: &ShardRef) -> Result<Chunks, ReaderError> {
        let lines = PublishedLines::of_shard(shard);
        if self.keeps(lines.largest()) {
            let key = BodyKey::Made(lines.identity, Encoding::Identity);
            Ok(chunks::once(
                self.body(&key, || self.read_decoded(&lines)).await?,
            ))
        } else {
            self.decoded(&lines.object, lines.length, Extent::Prefix)
                .await
        }
    }

    /// Reads all lines of an object into memory.
    async fn read_decoded(&self, lines: &PublishedLines) -> Result<Bytes, ReaderError> {
        let size = lines.length;
        let stored = self.cached_object(&lines.object).await?;
        let decoded = self
            .run(size, move || zstd::bulk::decompress(&stored, small(size)))
            .await
            .map_err(ReaderError::coding(&lines.key()))?;
        check_size(&lines.key(), size, decoded.len() as u64)?;
        Ok(decoded.into())
    }

    /// Streams lines of the object `whole` from the Shards that hold them or, if these are most of
    /// them, from one read of the whole.
    async fn selected(
        &self,
        whole: &ObjectRef,
        lines: &LineSelection,
    ) -> Result<Chunks, ReaderError> {
        if lines.reads_whole {
            let size = lines.snapshot.size;
            let whole = self.decoded(whole, size, Extent::Prefix).await?;
            return Ok(pick(whole, lines.ranges.iter().cloned()));
        }
        let mut parts = lines.parts().into_iter();
        let Some(first) = parts.next() else {
            return Ok(stream::empty().boxed());
        };
        // Opened now, so that a failure of the store still gets its status.
        let first = pick(self.cached_shard(&first.shard).await?, first.ranges);
        let catalogs = self.clone();
        let others = stream::iter(parts).then(move |part| {
            let catalogs = catalogs.clone();
            async move {
                Ok::<_, ReaderError>(pick(catalogs.cached_shard(&part.shard).await?, part.ranges))
            }
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

#[cfg(test)]
mod tests {
    use model::ObjectDigest;
    use store::{Condition, Store};
    use storekit::MemoryStore;

    use super::*;
    use crate::ReaderSettings;

    #[tokio::test]
    async fn read_lines_refuses_lines_of_another_size() {
        let frame = Bytes::from(zstd::bulk::compress(b"{}\n{}\n", 3).unwrap());
        let object = ObjectDigest::of(&frame).with_kind(Kind::Package);
        let store = MemoryStore::new();
        store
            .put(&object.key(), frame, Condition::Always)
            .await
            .unwrap();
        let catalogs = PublishedCatalogs::new(Arc::new(store), ReaderSettings::default());
        for (size, is_right) in [(5, false), (6, true), (7, false)] {
            let sha256 = Sha256::of(b"{}\n{}\n");
            let lines = PublishedLines::of_object(object, Content { sha256, size });
            assert_eq!(
                catalogs.read_lines(&lines).await.is_ok(),
                is_right,
                "{size}"
            );
        }
    }
}
