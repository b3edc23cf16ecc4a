use std::{num::NonZero, path::PathBuf, thread};

use crate::Limits;

/// How much memory and work goes into rendering. Only the levels change what is written.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Threads that parse and compress. Default: one per core.
    pub workers: usize,
    /// Files are cut into chunks of about this many bytes. Default: 2 MiB, several times the biggest usual Package.
    pub chunk_bytes: usize,
    /// Compressed Shards that are kept in memory, in bytes; more goes to a temporary file. Default: 16 MiB, 300 MB
    /// of catalog.
    pub memory_bytes: usize,
    /// Where that temporary file is made. Default: the system's folder for temporary files.
    pub scratch_dir: PathBuf,
    /// zstd level of a Shard. Default: 6, half a percent larger than 9 and a third faster.
    pub shard_level: i32,
    /// zstd level of `all.json.zst` and the index, at most 19 so that the window stays below 8 MB. Default: 9.
    pub zstd_level: i32,
    /// Level of `all.json.gz`. Default: 6; 9 takes twice as long for 8 % less.
    pub gzip_level: u32,
    /// What no catalog may exceed.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: thread::available_parallelism().map_or(2, NonZero::get),
            chunk_bytes: 2 << 20,
            memory_bytes: 16 << 20,
            scratch_dir: std::env::temp_dir(),
            shard_level: 6,
            zstd_level: 9,
            gzip_level: 6,
            limits: Limits::default(),
        }
    }
}
