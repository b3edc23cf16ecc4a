//! What all layers of an image may use together.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::digest::Digest;
use crate::error::{Error, Limit};
use crate::settings::Limits;

/// Counters shared by the scanners of one image.
pub(crate) struct Budget {
    pub(crate) limits: Limits,
    bytes: AtomicU64,
    entries: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            bytes: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }

    /// Counts decompressed bytes.
    pub(crate) fn bytes(&self, layer: &Digest, count: u64) -> Result<(), Limit> {
        let limit = self.limits.decompressed_bytes;
        check(("decompressed_bytes", limit), add(&self.bytes, count), || {
            format!("layer {layer}")
        })
    }

    /// Counts one tar entry.
    pub(crate) fn entry(&self, layer: &Digest) -> Result<(), Error> {
        let limit = self.limits.entries;
        let checked = check(("entries", limit), add(&self.entries, 1), || format!("layer {layer}"));
        checked.map_err(Error::Limit)
    }

    pub(crate) fn path(&self, name: &[u8]) -> Result<(), Error> {
        let limit = self.limits.path_bytes as u64;
        let start = || String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
        check(("path_bytes", limit), name.len() as u64, || {
            format!("path {}...", start())
        })
        .map_err(Error::Limit)
    }

    pub(crate) fn file(&self, path: &str, size: u64) -> Result<(), Error> {
        check(("file_bytes", self.limits.file_bytes), size, || format!("file {path}")).map_err(Error::Limit)
    }
}

fn add(counter: &AtomicU64, count: u64) -> u64 {
    counter.fetch_add(count, Ordering::Relaxed).saturating_add(count)
}

fn check((name, limit): (&'static str, u64), used: u64, place: impl Fn() -> String) -> Result<(), Limit> {
    if used <= limit {
        Ok(())
    } else {
        Err(Limit {
            name,
            limit,
            place: place(),
        })
    }
}
