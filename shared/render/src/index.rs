use std::{io, mem};

use model::{Document, Index, IndexedShard, ObjectDigest};

use crate::Rendering;

/// The index of a Snapshot, ready to be stored.
#[derive(Debug)]
pub struct IndexFile {
    /// The bytes to store: one zstd frame.
    pub bytes: Vec<u8>,
    /// Hash and size of these bytes.
    pub stored: ObjectDigest,
}

impl Rendering {
    /// Returns the index. It takes the entries out of the Shards, because they are large.
    ///
    /// # Errors
    /// Fails if the compressor cannot allocate its memory.
    pub fn take_index(&mut self) -> io::Result<IndexFile> {
        let shards = self.shards.iter_mut();
        let shards = shards.map(|shard| IndexedShard {
            lines: shard.lines.sha256,
            metas: mem::take(&mut shard.metas),
        });
        let content = Index {
            shards: shards.collect(),
        }
        .to_bytes();
        // Not the level of other documents: an index has megabytes, and its densest level would take seconds.
        let bytes = zstd::bulk::compress(&content, self.context.settings.zstd_level)?;
        Ok(IndexFile {
            stored: ObjectDigest::of(&bytes),
            bytes,
        })
    }
}
