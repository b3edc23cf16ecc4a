use std::{num::NonZero, thread};

use work::{Budget, DEFAULT_STEPS};

/// Memory and work that rendering may take. Only the levels change the bytes that are written.
#[derive(Debug, Clone)]
pub struct RenderSettings {
    /// Number of threads that parse and compress. Default: one per core.
    pub workers: usize,
    /// Approximate size of the chunks that files are cut into, in bytes. Default: 2 MiB, several
    /// times a large Package.
    pub chunk_bytes: usize,
    /// Maximum number of bytes of compressed Shards in memory; more of them go to a file in the
    /// system's folder for temporary files, all together. Default: 16 MiB, which is 300 MB of
    /// catalog.
    pub memory_bytes: usize,
    /// zstd level of a Shard and of the index. Default: 6, half a percent larger than 9 and a third
    /// faster.
    pub shard_level: i32,
    /// zstd level of `all.json.zst`. Default: 2, 1 % larger than 3 in three quarters of the time:
    /// every publication makes it, and clients that follow a catalog read Shards.
    pub zstd_level: i32,
    /// Level of `all.json.gz` and of the image's layer, from 0 to 12, of libdeflate. Default: 5, a
    /// sixth faster than 6 and 2 % larger.
    pub gzip_level: i32,
    /// Limits of one catalog. Default: far above the largest real one.
    pub limits: RenderLimits,
    /// Bound of the work. Its memory is that for the documents that are parsed. Default: steps for
    /// any real catalog, and 256 MiB of its own; a process that renders several catalogs shares one
    /// pool among them.
    pub budget: Budget,
    /// Keeps the position of each document in its file, for [`crate::Shard::places`]. Default:
    /// false.
    pub positions: bool,
}

impl Default for RenderSettings {
    fn default() -> Self {
        Self {
            workers: thread::available_parallelism().map_or(2, NonZero::get),
            chunk_bytes: 2 << 20,
            memory_bytes: 16 << 20,
            shard_level: 6,
            zstd_level: 2,
            gzip_level: 5,
            limits: RenderLimits::default(),
            budget: Budget::default(),
            positions: false,
        }
    }
}

/// Limits of one catalog. Exactly a limit passes; one more is a
/// [`RenderError::Limit`](crate::RenderError::Limit), or a problem of the file for limits of one
/// document.
///
/// The largest real catalogs have 330 packages, 20,000 documents and 200 MB. Files that
/// `.indexignore` excludes count too: they are held until all ignore files are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderLimits {
    /// Limits of each document. More is a problem of its file.
    pub document: fbc::FbcLimits,
    /// Maximum number of documents of all files, counted once more for every link to a file.
    /// Default 500,000: each takes some 200 bytes of memory until the index is written.
    pub documents: u64,
    /// Maximum number of Packages. Default 20,000: sixty times those of the largest catalog.
    pub packages: u64,
    /// Maximum number of canonical bytes of all documents, counted once more for every link to a
    /// file. Default 8 GiB: it is streamed, so it costs time, not memory.
    pub content_bytes: u64,
    /// Maximum number of bytes of `schema`, `package` and `name` of all documents, which are held
    /// in memory for the index. Default 128 MiB: 20,000 documents have 1 MB.
    pub name_bytes: u64,
    /// Maximum number of bytes of all `.indexignore` files. Default 64 KiB: each holds a few
    /// patterns, and every pattern is tried on every path.
    pub ignore_bytes: u64,
    /// Maximum number of patterns in these files. Default 1,000: real catalogs have a few.
    pub ignore_patterns: usize,
    /// Maximum number of steps to compare paths with patterns and to read lines for facts: see
    /// [`Budget::charge`]. Default: [`DEFAULT_STEPS`].
    pub steps: u64,
}

impl Default for RenderLimits {
    fn default() -> Self {
        Self {
            document: fbc::FbcLimits::default(),
            documents: 500_000,
            packages: 20_000,
            content_bytes: 8 << 30,
            name_bytes: 128 << 20,
            ignore_bytes: 64 << 10,
            ignore_patterns: 1_000,
            steps: DEFAULT_STEPS,
        }
    }
}
