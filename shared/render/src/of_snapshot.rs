//! A Rendering of published Shards: everything that is made from FBC files can be made from the Shards again.

use std::{collections::HashMap, io::Read, sync::Arc};

use fbc::Chunks;
use model::{Content, IndexedMeta, ShardRef, Snapshot};

use crate::{
    RenderError, RenderSettings, Rendering, Shard, StoredShards,
    context::RenderContext,
    fragment::{CompressedLines, indexed},
    shard::load,
};

impl Rendering {
    /// Creates a Rendering from a Snapshot instead of FBC files; `shards` reads its Shards. [`Rendering::write_all`] then
    /// writes the same bytes as before, if the compressors are the same. It counts no Metas before
    /// [`Rendering::read_metas`].
    pub fn of_snapshot(snapshot: &Snapshot, shards: Arc<dyn StoredShards>, settings: RenderSettings) -> Self {
        Self {
            shards: snapshot.shards().map(Shard::of_ref).collect(),
            files: HashMap::new(),
            context: Arc::new(RenderContext::new(settings, shards)),
        }
    }

    /// Reads the Metas of all Shards, so that [`Rendering::take_index`] returns the index again.
    ///
    /// # Errors
    /// [`RenderError::Damaged`] and [`RenderError::Unreadable`] for Shards that cannot be used.
    pub fn read_metas(&mut self) -> Result<(), RenderError> {
        let context = &self.context;
        self.shards.iter_mut().try_for_each(|shard| {
            let damaged = || RenderError::Damaged {
                sha256: shard.stored.sha256,
            };
            let compressed = load(&*context.stored, &shard.stored)?;
            let lines = zstd::Decoder::with_buffer(&compressed[..]).map_err(|_| damaged())?;
            shard.metas = index_lines(lines, shard.lines).ok_or_else(damaged)?;
            Ok(())
        })
    }
}

/// Returns the position and the names of each Meta in the canonical lines of a Shard. `None` if they are not canonical
/// FBC of the expected size.
pub fn index_lines(mut lines: impl Read, expected: Content) -> Option<Vec<IndexedMeta>> {
    // Whatever limits the publisher had: a line is at most as long as its Shard.
    let limits = fbc::FbcLimits {
        document_bytes: usize::try_from(expected.size).ok()?.max(1),
        memory_bytes: usize::MAX,
        ..fbc::FbcLimits::default()
    };
    let mut metas = Vec::new();
    let mut offset = 0;
    // Canonical lines are FBC, and their canonical form is the lines themselves.
    for chunk in Chunks::new(&mut lines, limits, RenderSettings::default().chunk_bytes) {
        let indexed = chunk.and_then(|chunk| {
            chunk.metas(&limits, &mut |meta| {
                metas.push(indexed(&meta, offset));
                offset += meta.line.len() as u64;
            })
        });
        indexed.ok()?;
    }
    (offset == expected.size).then_some(metas)
}

impl Shard {
    pub(crate) fn of_ref(shard: &ShardRef) -> Self {
        Self {
            name: shard.name.clone(),
            lines: shard.lines,
            stored: shard.stored,
            metas: Vec::new(),
            places: Vec::new(),
            body: CompressedLines::Stored(shard.stored),
        }
    }
}
