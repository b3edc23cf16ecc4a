//! Chunks of files that were rendered before: published Shards have their lines, so they are not
//! parsed again.

use std::io::{self, BufReader, Cursor, Read};
use std::{collections::HashMap, ops::Range, sync::Arc};

use model::{Content, IndexedMeta, Sha256, ShardRef};

use crate::context::{ChunkPlace, RenderContext};
use crate::fragment::{CompressedLines, Fragment};
use crate::{RenderError, shard::load};

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
    let shards = shards.map(|shard| (shard.0.lines.sha256, Arc::new(shard)));
    let shards: HashMap<Sha256, _> = shards.collect();
    let known = chunks.into_iter().filter_map(|(chunk, lines)| {
        let parts = lines.into_iter().map(|(lines, range)| {
            let shard = shards.get(&lines)?.clone();
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

/// Returns the hashed chunks that the lines of a Package come from, and the position of those of
/// each.
pub(crate) fn hashed_chunks(fragments: &[Fragment]) -> Vec<(Arc<ChunkPlace>, Range<u64>)> {
    let mut end = 0;
    let chunks = fragments.iter().map(|fragment| {
        let start = end;
        end += fragment.size;
        (fragment.place.clone(), start..end)
    });
    chunks.filter(|(place, _)| place.hash.is_some()).collect()
}

/// Returns the published Shard that the fragments of a Package make up; `None` if they are other
/// lines.
pub(crate) fn published(fragments: &[Fragment]) -> Option<(Content, CompressedLines)> {
    let (shard, _) = &*fragments.first()?.published.as_ref()?.shard;
    let end = fragments.iter().try_fold(0, |end, fragment| {
        let part = fragment.published.as_ref()?;
        (part.range.start == end).then_some(part.range.end)
    })?;
    (end == shard.lines.size).then_some((shard.lines, CompressedLines::Stored(shard.stored)))
}

/// Reader of parts of one published Shard. Parts that come in their order are read in one pass.
#[derive(Default)]
pub(crate) struct PartReader(Option<OpenShard>);

struct OpenShard {
    decoder: zstd::Decoder<'static, BufReader<Cursor<Vec<u8>>>>,
    position: u64,
}

impl PartReader {
    /// Passes the lines of a part to `sink`, block by block.
    pub(crate) fn read(
        &mut self,
        part: &ShardPart,
        context: &RenderContext,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), RenderError> {
        let stored = part.shard.0.stored;
        let damaged = |_| RenderError::Damaged(stored.sha256);
        self.0.take_if(|open| open.position > part.range.start);
        let open = match &mut self.0 {
            Some(open) => open,
            none => none.insert(OpenShard {
                decoder: zstd::Decoder::new(Cursor::new(load(&*context.stored, &stored)?))
                    .map_err(damaged)?,
                position: 0,
            }),
        };
        let mut block = vec![0; 128 << 10];
        while open.position < part.range.end {
            let is_before = open.position < part.range.start;
            let end = if is_before {
                part.range.start
            } else {
                part.range.end
            };
            let length = (block.len() as u64).min(end - open.position) as usize;
            open.decoder
                .read_exact(&mut block[..length])
                .map_err(damaged)?;
            open.position += length as u64;
            if is_before {
                // Parts out of their order could make it skip the same lines again and again.
                let _ = context.settings.budget.charge_bytes(length);
                context.check_budget()?;
            } else {
                sink(&block[..length]).map_err(RenderError::Scratch)?;
            }
        }
        Ok(())
    }
}
