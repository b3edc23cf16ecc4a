use std::{ops::Range, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use layout::{Document, Form, Index, Key, Sha256, ShardRef};

use crate::{
    app::{App, blocking},
    coding::decode_at_most,
    error::{Corruption, Error},
    fields::Query,
    index::CatalogIndex,
    published::Published,
    source::Object,
    stream::{Chunks, exact, pick},
};

/// Some lines of a published state.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    pub(crate) published: Arc<Published>,
    /// Where they lie in `all.json`, ascending.
    ranges: Arc<[Range<u64>]>,
    /// Their bytes together.
    pub(crate) length: u64,
    /// What tells them from any other lines: a hash of the content hash and the query.
    pub(crate) identity: Sha256,
}

impl Lines {
    /// The object that holds all of them.
    pub(crate) fn key(&self) -> Key {
        let published = &self.published;
        Key::All(published.name.clone(), published.current.content_hash, Form::Zstd)
    }
}

/// Lines of one shard.
struct Part {
    shard: ShardRef,
    /// Where they lie in the shard.
    ranges: Vec<Range<u64>>,
}

impl App {
    /// Finds the lines that match a query with at least one filter.
    pub(crate) async fn find(&self, published: Arc<Published>, query: &Query) -> Result<Lines, Error> {
        let index = self.index(&published).await?;
        let ranges: Arc<[Range<u64>]> = index.select(query).into();
        Ok(Lines {
            length: ranges.iter().map(|range| range.end - range.start).sum(),
            identity: identity(published.current.content_hash, query),
            ranges,
            published,
        })
    }

    async fn index(&self, published: &Arc<Published>) -> Result<Arc<CatalogIndex>, Error> {
        let hash = published.current.content_hash;
        let load = async {
            let key = Key::Index(published.name.clone(), hash);
            let stored = self.read(&key).await?;
            let published = Arc::clone(published);
            blocking(move || parse(&key, &stored, &published).map(Arc::new)).await
        };
        Box::pin(self.caches.indexes.get_or_insert_async(&hash, load)).await
    }

    /// Reads lines from the shards that hold them, or, if they are in most of them, from one read of the whole.
    pub(crate) async fn lines(self: &Arc<Self>, lines: Lines) -> Result<Chunks, Error> {
        let snapshot = &lines.published.snapshot;
        let parts = parts(snapshot.shards(), &lines.ranges);
        let stored: u64 = parts.iter().map(|part| part.shard.stored.size).sum();
        let key = lines.key();
        let chunks = if parts.len() > MANY && stored > snapshot.all.zstd.size / 2 {
            let whole = Object::new(key.clone(), snapshot.all.zstd);
            pick(self.decoded(&whole, snapshot.size).await?, lines.ranges.iter().cloned())
        } else {
            self.parts(parts).await?
        };
        Ok(exact(chunks, lines.length, key))
    }

    async fn parts(self: &Arc<Self>, parts: Vec<Part>) -> Result<Chunks, Error> {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else {
            return Ok(stream::empty().boxed());
        };
        let first = self.part_lines(first).await?;
        let app = Arc::clone(self);
        let others = stream::iter(parts).then(move |part| {
            let app = Arc::clone(&app);
            async move { app.part_lines(part).await }
        });
        Ok(first.chain(others.try_flatten()).boxed())
    }

    async fn part_lines(&self, part: Part) -> Result<Chunks, Error> {
        Ok(pick(self.shard(&part.shard).await?, part.ranges))
    }
}

/// Up to this many shards are read one by one: a query for one package reads one or two.
const MANY: usize = 4;

/// A hash that no other content or query has: each text is preceded by its length.
fn identity(content: Sha256, query: &Query) -> Sha256 {
    let mut text = Vec::with_capacity(160);
    text.extend_from_slice(content.as_bytes());
    for filter in [&query.schema, &query.package, &query.name] {
        text.extend_from_slice(&(filter.len() as u64).to_be_bytes());
        text.extend_from_slice(filter.as_bytes());
    }
    Sha256::of(&text)
}

fn parse(key: &Key, stored: &[u8], published: &Published) -> Result<CatalogIndex, Error> {
    let corrupt = |source| Error::corrupt(key, source);
    if Sha256::of(stored) != published.snapshot.index.sha256 {
        return Err(corrupt(Corruption::Hash));
    }
    let bytes = decode_at_most(stored, Index::MAX_BYTES).map_err(|source| corrupt(Corruption::Coding(source)))?;
    let index = Index::from_bytes(&bytes).map_err(|source| corrupt(Corruption::Document(source)))?;
    CatalogIndex::new(&index, &published.snapshot).map_err(|_| corrupt(Corruption::Mismatch))
}

/// Splits ranges of `all.json` into ranges of shards.
fn parts<'a>(shards: impl Iterator<Item = &'a ShardRef>, ranges: &[Range<u64>]) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    for shard in shards {
        let end = start + shard.size;
        let mut own = Vec::new();
        while let Some(range) = ranges.get(at).filter(|range| range.start < end) {
            own.push(range.start.max(start) - start..range.end.min(end) - start);
            if range.end > end {
                break;
            }
            at += 1;
        }
        if !own.is_empty() {
            parts.push(Part {
                shard: shard.clone(),
                ranges: own,
            });
        }
        start = end;
    }
    parts
}
