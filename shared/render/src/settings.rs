use std::{num::NonZero, path::PathBuf, thread};

use fbc::StopFlag;

use crate::{MemoryBudget, RenderLimits};

/// Memory and work that rendering may take. Only the levels change the bytes that are written.
#[derive(Debug, Clone)]
pub struct RenderSettings {
    /// Number of threads that parse and compress. Default: one per core.
    pub workers: usize,
    /// Approximate size of the chunks that files are cut into, in bytes. Default: 2 MiB, several times a large Package.
    pub chunk_bytes: usize,
    /// Maximum number of bytes of compressed Shards in memory; the rest goes to a temporary file. Default: 16 MiB, which is
    /// 300 MB of catalog.
    pub memory_bytes: usize,
    /// Folder for that temporary file. Default: the system's folder for temporary files.
    pub scratch_dir: PathBuf,
    /// zstd level of a Shard. Default: 6, half a percent larger than 9 and a third faster.
    pub shard_level: i32,
    /// zstd level of `all.json.zst` and the index, at most 19 so that the window stays below 8 MB. Default: 9.
    pub zstd_level: i32,
    /// Level of `all.json.gz`. Default: 6; 9 takes twice as long for 8 % less.
    pub gzip_level: u32,
    /// Limits of one catalog.
    pub limits: RenderLimits,
    /// Memory for the documents that are parsed. Default: 256 MiB of its own; a process that renders several catalogs shares
    /// one among them.
    pub documents: MemoryBudget,
    /// Keeps the position of each document in its file, for [`crate::Shard::places`]. Default: false.
    pub positions: bool,
    /// Ends the work early. Default: never set.
    pub stop: StopFlag,
}

impl Default for RenderSettings {
    fn default() -> Self {
        Self {
            workers: thread::available_parallelism().map_or(2, NonZero::get),
            chunk_bytes: 2 << 20,
            memory_bytes: 16 << 20,
            scratch_dir: std::env::temp_dir(),
            shard_level: 6,
            zstd_level: 9,
            gzip_level: 6,
            limits: RenderLimits::default(),
            documents: MemoryBudget::default(),
            positions: false,
            stop: StopFlag::default(),
        }
    }
}
