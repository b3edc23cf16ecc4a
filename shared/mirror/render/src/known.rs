//! Chunks of files that were rendered before: published Shards have their lines, so they are not
//! parsed again.

use std::{collections::HashMap, ops::Range, sync::Arc};

use model::{IndexedMeta, Sha256, ShardRef};

/// Lines of chunks in the Shards of one published state, by the hash of the chunk: those of one
/// Package in each part.
pub type KnownChunks = HashMap<Sha256, Vec<ShardPart>>;

/// Lines of the chunks of one rendering, by the hash of the chunk: the sha256 of the lines of a
/// Shard, and the position in them.
pub type ChunkLines = HashMap<Sha256, Vec<(Sha256, Range<u64>)>>;

/// Maximum number of parts of Shards that are recorded of one catalog: some 3 MB. Chunks beyond it
/// are parsed again. The full catalog of the community has 400.
pub(crate) const RECORDED_PARTS: usize = 20_000;

/// Some of the lines of a published Shard.
#[derive(Debug, Clone)]
pub struct ShardPart {
    /// The Shard, and the positions of its Metas.
    pub shard: Arc<(ShardRef, Vec<IndexedMeta>)>,
    /// Position in the uncompressed Shard, in bytes.
    pub range: Range<u64>,
}

/// Returns the chunks of an earlier rendering all of whose lines are in these Shards, which are
/// given with the positions of their Metas.
pub fn known_chunks(
    chunks: ChunkLines,
    shards: impl Iterator<Item = (ShardRef, Vec<IndexedMeta>)>,
) -> KnownChunks {
    let mut by_lines = HashMap::new();
    for shard in shards {
        by_lines.insert(shard.0.lines.sha256, Arc::new(shard));
    }
    let known = chunks.into_iter().filter_map(|(chunk, lines)| {
        let parts = lines.into_iter().map(|(lines, range)| {
            let shard = by_lines.get(&lines)?.clone();
            Some(ShardPart { shard, range })
        });
        Some((chunk, parts.collect::<Option<_>>()?))
    });
    known.collect()
}

impl ShardPart {
    /// Returns the entries of its Metas, their offsets counted from its start.
    pub(crate) fn metas(&self) -> Vec<IndexedMeta> {
        // Searched one by one, because another program may have published an index without order.
        let metas = self
            .shard
            .1
            .iter()
            .filter(|meta| self.range.contains(&meta.offset));
        let moved = metas.map(|meta| IndexedMeta {
            offset: meta.offset - self.range.start,
            ..meta.clone()
        });
        moved.collect()
    }
}
