use std::{ops::Range, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{Index, Key, Kind, Sha256, ShardRef, Snapshot, StoredDocument};

use crate::{
    app::{App, blocking},
    error::{ApiError, Corruption},
    index::CatalogIndex,
    pointer::ServedCatalog,
    rfc9110::Query,
    stored::Extent,
    stream::{Chunks, exact, pick},
};

/// Maximum number of Shards that are read one by one. A query for one package reads one or two; one that hits more reads
/// the whole catalog instead, if that is less to read.
const SHARDS_ONE_BY_ONE: usize = 4;

/// The lines of a published state that match a query.
#[derive(Debug, Clone)]
pub(crate) struct SelectedLines {
    served: Arc<ServedCatalog>,
    snapshot: Arc<Snapshot>,
    /// Positions of the lines in `all.json`, in bytes, ascending.
    ranges: Arc<[Range<u64>]>,
    /// Number of bytes of all lines together.
    pub(crate) length: u64,
    /// Identifies the lines: a hash of the content hash and the query.
    pub(crate) identity: Sha256,
}

impl SelectedLines {
    /// Returns lines at known positions, for readers that keep none of them.
    pub(crate) fn at(served: &Arc<ServedCatalog>, snapshot: &Arc<Snapshot>, ranges: Vec<Range<u64>>) -> Self {
        Self {
            length: ranges.iter().map(|range| range.end - range.start).sum(),
            // It is a key of the cache for bodies, which these lines never are.
            identity: served.current.content_hash,
            ranges: ranges.into(),
            served: Arc::clone(served),
            snapshot: Arc::clone(snapshot),
        }
    }

    /// Returns the key of the object that holds all of them, for errors.
    pub(crate) fn key(&self) -> Key {
        self.served.current.all.zstd.key()
    }
}

/// The selected lines that one Shard holds.
struct ShardLines {
    shard: ShardRef,
    /// Positions of the lines in the uncompressed Shard, in bytes, ascending.
    ranges: Vec<Range<u64>>,
}

impl App {
    /// Finds the lines that match a query with at least one filter.
    pub(crate) async fn select(&self, served: Arc<ServedCatalog>, query: &Query) -> Result<SelectedLines, ApiError> {
        let snapshot = self.snapshot(&served).await?;
        let index = self.index(&served, &snapshot).await?;
        let ranges: Arc<[Range<u64>]> = index.select(query).into();
        Ok(SelectedLines {
            length: ranges.iter().map(|range| range.end - range.start).sum(),
            identity: identity(served.current.content_hash, query),
            ranges,
            served,
            snapshot,
        })
    }

    pub(crate) async fn index(
        &self,
        served: &ServedCatalog,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Arc<CatalogIndex>, ApiError> {
        let hash = served.current.snapshot.digest.sha256;
        if let Some(index) = self.caches.indexes.get(&hash) {
            return Ok(index);
        }
        let load = async {
            let object = snapshot.index.with_kind(Kind::Index);
            let stored = self.read_object(&object).await?;
            let snapshot = Arc::clone(snapshot);
            // An index is some ten times as large once it is decompressed.
            blocking(10 * object.digest.size, move || {
                parse_index(&object.key(), &stored, &snapshot).map(Arc::new)
            })
            .await
        };
        Box::pin(self.caches.indexes.get_or_insert_async(&hash, load)).await
    }

    /// Streams selected lines from the Shards that hold them or, if these are most of them, from one read of the whole.
    pub(crate) async fn lines(self: &Arc<Self>, lines: &SelectedLines) -> Result<Chunks, ApiError> {
        let snapshot = &lines.snapshot;
        let parts = split(snapshot.shards(), &lines.ranges);
        let stored: u64 = parts.iter().map(|part| part.shard.stored.size).sum();
        let key = lines.key();
        // A query by schema hits every package. Reading hundreds of shards one after the other takes longer than the
        // whole catalog.
        let chunks = if parts.len() > SHARDS_ONE_BY_ONE && stored > snapshot.all.zstd.size / 2 {
            let whole = &lines.served.current.all.zstd;
            let whole = self.decoded(whole, snapshot.size, Extent::Prefix).await?;
            pick(whole, lines.ranges.iter().cloned())
        } else {
            self.shard_lines(parts).await?
        };
        Ok(exact(chunks, lines.length, key))
    }

    async fn shard_lines(self: &Arc<Self>, parts: Vec<ShardLines>) -> Result<Chunks, ApiError> {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else {
            return Ok(stream::empty().boxed());
        };
        // Opened now, so that a failure of the store still gets its status.
        let first = pick(self.shard(&first.shard).await?, first.ranges);
        let app = Arc::clone(self);
        let others = stream::iter(parts).then(move |part| {
            let app = Arc::clone(&app);
            async move { Ok::<_, ApiError>(pick(app.shard(&part.shard).await?, part.ranges)) }
        });
        Ok(first.chain(others.try_flatten()).boxed())
    }
}

/// Returns a hash that no other content or query has: each text is preceded by its length.
fn identity(content: Sha256, query: &Query) -> Sha256 {
    let mut text = Vec::with_capacity(160);
    text.extend_from_slice(content.as_bytes());
    // With the lengths, (`a`, `bc`) and (`ab`, `c`) are different texts.
    for filter in [&query.schema, &query.package, &query.name] {
        text.extend_from_slice(&(filter.len() as u64).to_be_bytes());
        text.extend_from_slice(filter.as_bytes());
    }
    Sha256::of(&text)
}

fn parse_index(key: &Key, stored: &[u8], snapshot: &Snapshot) -> Result<CatalogIndex, ApiError> {
    let corrupt = |source| ApiError::corrupt(key, source);
    let index = Index::from_stored(stored).map_err(|source| corrupt(Corruption::Document(source)))?;
    CatalogIndex::new(&index, snapshot).map_err(|_| corrupt(Corruption::Mismatch))
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
