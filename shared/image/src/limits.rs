//! What no image may exceed, with the reason for every default.

/// The bounds of an image. Exactly the limit passes, one more is an [`Error::Limit`](crate::Error::Limit).
///
/// The largest real catalogs are 200 MB of FBC on a base image, which leaves all defaults a wide margin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a manifest, an index or a token answer. Default 4 MiB, what registries accept themselves.
    pub manifest_bytes: u64,
    /// Bytes of an image config. Default 8 MiB: the largest hold some 100 KiB of history and labels.
    pub config_bytes: u64,
    /// Layers of one image. Default 256; builders stop at 127.
    pub layers: u64,
    /// Compressed bytes of all layers together, as declared. Default 8 GiB: index images have hundreds of
    /// megabytes.
    pub compressed_bytes: u64,
    /// Decompressed bytes of all layers together. Default 32 GiB.
    pub decompressed_bytes: u64,
    /// Decompressed bytes of a layer for each compressed one. Default 200: FBC is packed 12 times with gzip and 27 times
    /// with zstd at its best, and bombs 1,000 times or more.
    pub ratio: u64,
    /// Decompressed bytes of a layer that are free of the ratio, so that a few blocks of zeros are no bomb.
    /// Default 64 MiB.
    pub ratio_floor_bytes: u64,
    /// Tar entries of all layers together. Default 1 million: a base image has some 10,000.
    pub entries: u64,
    /// Bytes of a path, a link target or the label that names the FBC root. Default 4096, Linux's `PATH_MAX`.
    pub path_bytes: u64,
    /// Bytes of headers before one tar entry (long names, PAX records), which are held in memory. Default 1 MiB, what
    /// Go's reader takes for one of them.
    pub header_bytes: u64,
    /// Signatures of one image, and what lists them: manifests, and pages after the first. Default 64, far above what
    /// rotating keys and mirrors leave behind.
    pub signatures: u64,
    /// Bytes of one signature with what it signs. Default 4 MiB, what other tools allow.
    pub signature_bytes: u64,
    /// Bytes of one file under the FBC root. Default 4 GiB: files are streamed, so this is no matter of memory.
    pub file_bytes: u64,
    /// Bytes of all paths and link targets under the FBC root, folders included, which are held in memory to tell what
    /// hides what. Default 64 MiB: 10,000 files take about one.
    pub tree_bytes: u64,
    /// Folders and links that are passed through when all links are followed. Default 1 million; catalogs have no links.
    pub link_steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            manifest_bytes: 4 << 20,
            config_bytes: 8 << 20,
            layers: 256,
            compressed_bytes: 8 << 30,
            decompressed_bytes: 32 << 30,
            ratio: 200,
            ratio_floor_bytes: 64 << 20,
            entries: 1_000_000,
            path_bytes: 4096,
            header_bytes: 1 << 20,
            signatures: 64,
            signature_bytes: 4 << 20,
            file_bytes: 4 << 30,
            tree_bytes: 64 << 20,
            link_steps: 1_000_000,
        }
    }
}
