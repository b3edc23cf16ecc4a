use std::io;

use layout::Sha256;

/// The Shards that are published already. Called from worker threads, where it may block.
pub trait Published: Send + Sync {
    /// Whether the Shard with this hash is there.
    fn contains(&self, sha256: &Sha256) -> bool;

    /// The stored bytes of that Shard: one zstd frame.
    ///
    /// # Errors
    /// Whatever reading it back ran into.
    fn load(&self, sha256: &Sha256) -> io::Result<Vec<u8>>;
}

/// Nothing is published yet.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl Published for Nothing {
    fn contains(&self, _: &Sha256) -> bool {
        false
    }

    fn load(&self, _: &Sha256) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}
