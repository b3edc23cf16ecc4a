use std::io;

use model::{ObjectDigest, Sha256};

/// Shards that the store already has. Called from worker threads, so an implementation may block.
pub trait StoredShards: Send + Sync {
    /// Returns the stored object of the Shard with these uncompressed lines, if there is one.
    fn stored(&self, lines: &Sha256) -> Option<ObjectDigest>;

    /// Reads the stored bytes of a Shard: one zstd frame.
    ///
    /// # Errors
    /// The error of the store.
    fn load(&self, stored: &ObjectDigest) -> io::Result<Vec<u8>>;
}

/// An empty store.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStoredShards;

impl StoredShards for NoStoredShards {
    fn stored(&self, _: &Sha256) -> Option<ObjectDigest> {
        None
    }

    fn load(&self, _: &ObjectDigest) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}
