//! Limits on an image, with the reason for each default, and the counters that enforce them.

use std::sync::atomic::{AtomicU64, Ordering};

use work::Budget;

use crate::{Digest, shown};

/// Limits on an image. A value equal to the limit passes, one more is a [`LimitExceeded`].
///
/// The largest real catalogs have 200 MB of FBC on a base image, far below all defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Bytes of a manifest, an index, a token answer or a list of branches. Default: 4 MiB, as
    /// registries limit them.
    pub manifest_bytes: u64,
    /// Bytes of an image config. Default: 8 MiB; the largest have 100 KiB of history and labels.
    pub config_bytes: u64,
    /// Layers of one image. Default: 256; builders stop at 127.
    pub layers: u64,
    /// Compressed bytes of all layers, as declared, or of an archive or pack. Default: 8 GiB; index
    /// images have hundreds of megabytes.
    pub compressed_bytes: u64,
    /// Decompressed bytes of all layers. Default: 32 GiB.
    pub decompressed_bytes: u64,
    /// Decompressed bytes of a layer for each compressed byte. Default: 200; FBC packs 12 times
    /// with gzip and at most 27 times with zstd, bombs 1,000 times or more.
    pub ratio: u64,
    /// Decompressed bytes of a layer that are exempt from the ratio, so that a few blocks of zeros
    /// are no bomb. Default: 64 MiB.
    pub ratio_floor_bytes: u64,
    /// Tar entries of all layers, or names in a commit. Default: 1 million; a base image has about
    /// 10,000.
    pub entries: u64,
    /// Bytes of a path, a link target or the label that names the FBC root. Default: 4096, as
    /// Linux's `PATH_MAX`.
    pub path_bytes: u64,
    /// Bytes of the headers before one tar entry (long names, PAX records), held in memory.
    /// Default: 1 MiB, as Go's reader.
    pub header_bytes: u64,
    /// Signatures of one image and the manifests and pages that list them. Default: 64, far above
    /// what key rotation leaves.
    pub signatures: u64,
    /// Bytes of one signature with its payload. Default: 4 MiB, as other tools allow.
    pub signature_bytes: u64,
    /// Bytes of one file below the FBC root. Default: 4 GiB; files are streamed, so memory does not
    /// limit them.
    pub file_bytes: u64,
    /// Bytes of all paths and link targets below the FBC root, held in memory. Default: 64 MiB;
    /// 10,000 files take 1 MiB.
    pub tree_bytes: u64,
    /// Folders and links that are visited when all links are followed. Default: 1 million; catalogs
    /// have no links.
    pub link_steps: u64,
}

/// A limit that an image or its catalog exceeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} exceeds the limit {name} of {limit}")]
pub struct LimitExceeded {
    /// Name of the limit, as in `catalogs.yaml`.
    pub name: &'static str,
    /// Value of the limit, in bytes or entries.
    pub limit: u64,
    /// The part that exceeds it, in words.
    pub place: String,
}

/// A limit by its name in `catalogs.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedLimit {
    /// Name of the limit.
    pub name: &'static str,
    /// Value of the limit, in bytes or entries.
    pub value: u64,
}

/// Counters that all layers of one image share.
pub struct UnpackBudget {
    pub(crate) limits: ImageLimits,
    bytes: AtomicU64,
    entries: AtomicU64,
    /// Bound of the work on the image.
    pub work: Budget,
}

impl Default for ImageLimits {
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

impl NamedLimit {
    /// Names a value.
    pub const fn new(name: &'static str, value: u64) -> Self {
        Self { name, value }
    }

    /// Compares what is used with the limit.
    ///
    /// # Errors
    /// More than the limit. `place` names what exceeds it.
    pub fn check(self, used: u64, place: impl FnOnce() -> String) -> Result<(), LimitExceeded> {
        if used > self.value {
            return Err(self.exceeded(place()));
        }
        Ok(())
    }

    /// Returns the error of what exceeds the limit.
    pub const fn exceeded(self, place: String) -> LimitExceeded {
        let Self { name, value: limit } = self;
        LimitExceeded { name, limit, place }
    }
}

impl ImageLimits {
    /// Returns the limit of a manifest.
    pub const fn manifest(&self) -> NamedLimit {
        NamedLimit::new("manifestBytes", self.manifest_bytes)
    }

    /// Returns the limit of an image config.
    pub const fn config(&self) -> NamedLimit {
        NamedLimit::new("configBytes", self.config_bytes)
    }

    /// Returns the limit of a signature.
    pub const fn signature(&self) -> NamedLimit {
        NamedLimit::new("signatureBytes", self.signature_bytes)
    }

    /// Returns the limit of the number of signatures.
    pub const fn signatures(&self) -> NamedLimit {
        NamedLimit::new("signatures", self.signatures)
    }
}

impl UnpackBudget {
    /// Creates the counters of one image, all at zero. Reading ends when `work` is stopped.
    pub fn new(limits: &ImageLimits, work: Budget) -> Self {
        Self {
            limits: limits.clone(),
            work,
            bytes: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }

    /// Counts decompressed bytes.
    ///
    /// # Errors
    /// More than `decompressedBytes`.
    pub fn count_bytes(&self, count: u64, place: impl Fn() -> String) -> Result<(), LimitExceeded> {
        let limit = NamedLimit::new("decompressedBytes", self.limits.decompressed_bytes);
        limit.check(add(&self.bytes, count), place)
    }

    /// Counts one entry of an archive or a folder.
    ///
    /// # Errors
    /// More than `entries`.
    pub fn count_entry(&self, place: impl Fn() -> String) -> Result<(), LimitExceeded> {
        NamedLimit::new("entries", self.limits.entries).check(add(&self.entries, 1), place)
    }

    /// Checks the length of a path or of a link's target. `holder` names the layer or folder.
    ///
    /// # Errors
    /// More than `pathBytes`.
    pub fn check_path(
        &self,
        path: &[u8],
        holder: impl Fn() -> String,
    ) -> Result<(), LimitExceeded> {
        let limit = NamedLimit::new("pathBytes", self.limits.path_bytes);
        limit.check(path.len() as u64, || {
            format!("path {} of {}", shown(path), holder())
        })
    }

    /// Checks the size of a file.
    ///
    /// # Errors
    /// More than `fileBytes`.
    pub fn check_file(&self, path: &str, size: u64) -> Result<(), LimitExceeded> {
        let limit = NamedLimit::new("fileBytes", self.limits.file_bytes);
        limit.check(size, || format!("file {}", shown(path.as_bytes())))
    }

    /// Checks the memory that all paths of the catalog take.
    pub(crate) fn check_tree(&self, bytes: u64, layer: &Digest) -> Result<(), LimitExceeded> {
        let limit = NamedLimit::new("treeBytes", self.limits.tree_bytes);
        limit.check(bytes, || format!("the paths down to layer {layer}"))
    }
}

fn add(counter: &AtomicU64, count: u64) -> u64 {
    // Relaxed: layers only add, and no other memory depends on the order.
    counter
        .fetch_add(count, Ordering::Relaxed)
        .saturating_add(count)
}
