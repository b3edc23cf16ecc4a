//! Shards that the store already has, as a rendering asks for them.

use std::io;

use model::{ObjectDigest, Sha256};

use crate::{KnownChunks, PublishedGzip, RenderError};

/// Shards that the store already has. Called from worker threads, so an implementation may block.
pub trait StoredShards: Send + Sync {
    /// Returns the stored object of the Shard with these uncompressed lines, if there is one.
    fn stored(&self, lines: &Sha256) -> Option<ObjectDigest>;

    /// True if there are none. Default: false.
    fn is_empty(&self) -> bool {
        false
    }

    /// Reads the stored bytes of a Shard: one zstd frame. An implementation compares their hash
    /// with `stored`.
    ///
    /// # Errors
    /// The error of the store, and bytes with another hash.
    fn load(&self, stored: &ObjectDigest) -> io::Result<Vec<u8>>;

    /// Opens the `all.json.gz` of a state that shares Shards with the next one. `None` if there is
    /// none, if its segments were not recorded, or if it cannot be opened: it only saves work.
    /// Default: `None`.
    fn gzip(&self) -> Option<PublishedGzip> {
        None
    }

    /// Returns the chunks that need not be parsed, where chunks are hashed for that:
    /// [`crate::Rendering::chunks`] then has those of the rendering. Default: `None`.
    fn known_chunks(&self) -> Option<&KnownChunks> {
        None
    }
}

/// An empty store.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStoredShards;

impl StoredShards for NoStoredShards {
    fn stored(&self, _: &Sha256) -> Option<ObjectDigest> {
        None
    }

    fn is_empty(&self) -> bool {
        true
    }

    fn load(&self, _: &ObjectDigest) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Reads the stored bytes of a Shard.
pub(crate) fn load(
    shards: &dyn StoredShards,
    stored: &ObjectDigest,
) -> Result<Vec<u8>, RenderError> {
    shards
        .load(stored)
        .map_err(|source| RenderError::Unreadable {
            sha256: stored.sha256,
            source,
        })
}
