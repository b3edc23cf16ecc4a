use std::{io, mem};

use layout::{Document, Index, IndexedShard, Sha256};

use crate::Rendering;

/// `index.json.zst`, ready to be stored.
#[derive(Debug)]
pub struct IndexFile {
    /// The bytes to store.
    pub bytes: Vec<u8>,
    /// The sha256 of what they decompress to.
    pub content: Sha256,
    /// How many bytes that is.
    pub size: u64,
}

impl Rendering {
    /// The index. It takes the entries out of the Shards, because they are large.
    ///
    /// # Errors
    /// What the compressor ran into.
    pub fn take_index(&mut self) -> io::Result<IndexFile> {
        let shards = self.shards.iter_mut();
        let shards = shards.map(|shard| IndexedShard {
            sha256: shard.sha256,
            metas: mem::take(&mut shard.metas),
        });
        let content = Index {
            shards: shards.collect(),
        }
        .to_bytes();
        let bytes = zstd::bulk::compress(&content, self.shop.settings.zstd_level)?;
        Ok(IndexFile {
            bytes,
            content: Sha256::of(&content),
            size: content.len() as u64,
        })
    }
}
