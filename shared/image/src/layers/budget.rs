//! What all layers of an image may use together, and each of them alone.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::digest::Digest;
use crate::error::{Error, Limit};
use crate::limits::Limits;
use crate::manifest::Blob;
use crate::path::shown;

/// Counters shared by the scanners of one image.
pub(crate) struct Budget {
    pub(crate) limits: Limits,
    bytes: AtomicU64,
    entries: AtomicU64,
}

/// Counts what one layer unpacks to.
pub(crate) struct Meter<'a> {
    budget: &'a Budget,
    layer: &'a Blob,
    bytes: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            bytes: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }

    pub(crate) fn meter<'a>(&'a self, layer: &'a Blob) -> Meter<'a> {
        Meter {
            budget: self,
            layer,
            bytes: 0,
        }
    }

    /// Counts decompressed bytes.
    pub(crate) fn bytes(&self, count: u64, place: impl Fn() -> String) -> Result<(), Limit> {
        let limit = self.limits.decompressed_bytes;
        check(("decompressedBytes", limit), add(&self.bytes, count), place)
    }

    /// Counts one tar entry.
    pub(crate) fn entry(&self, place: impl Fn() -> String) -> Result<(), Error> {
        let checked = check(("entries", self.limits.entries), add(&self.entries, 1), place);
        checked.map_err(Error::Limit)
    }

    /// Checks a path or the target of a link, in the layer or whatever else holds it.
    pub(crate) fn path(&self, path: &[u8], holder: impl Fn() -> String) -> Result<(), Error> {
        let place = || format!("path {} of {}", shown(path), holder());
        check(("pathBytes", self.limits.path_bytes), path.len() as u64, place).map_err(Error::Limit)
    }

    pub(crate) fn file(&self, path: &str, size: u64) -> Result<(), Error> {
        let place = || format!("file {}", shown(path.as_bytes()));
        check(("fileBytes", self.limits.file_bytes), size, place).map_err(Error::Limit)
    }

    /// Checks what is held of all paths of the catalog.
    pub(crate) fn tree(&self, bytes: u64, layer: &Digest) -> Result<(), Error> {
        let place = || format!("the paths down to layer {layer}");
        check(("treeBytes", self.limits.tree_bytes), bytes, place).map_err(Error::Limit)
    }
}

impl Meter<'_> {
    /// Counts decompressed bytes of the layer.
    pub(crate) fn bytes(&mut self, count: u64) -> Result<(), Limit> {
        let place = || format!("layer {}", self.layer.digest);
        self.budget.bytes(count, place)?;
        self.bytes += count;
        let Limits {
            ratio,
            ratio_floor_bytes,
            ..
        } = self.budget.limits;
        if self.bytes <= ratio.saturating_mul(self.layer.size).max(ratio_floor_bytes) {
            return Ok(());
        }
        Err(Limit {
            name: "ratio",
            limit: ratio,
            place: place(),
        })
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
