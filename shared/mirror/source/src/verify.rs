//! Comparison of bytes with the digest and the size that name them.

use bytes::Bytes;
use oci::{BlobRef, Digest, DigestHasher};

use crate::Error;

/// Returns `bytes` if their digest is `expected`.
pub(crate) fn verify(expected: &Digest, what: &'static str, bytes: Bytes) -> Result<Bytes, Error> {
    let mut hasher = expected.hasher();
    hasher.update(&bytes);
    finish(hasher, expected, what).map(|()| bytes)
}

/// Returns `bytes` if they have the size and the digest of `blob`.
pub(crate) fn verify_blob(
    blob: &BlobRef,
    what: &'static str,
    bytes: Bytes,
) -> Result<Bytes, Error> {
    let size = bytes.len() as u64;
    if size != blob.size {
        return Err(wrong_size(what, blob, size));
    }
    verify(&blob.digest, what, bytes)
}

fn finish(hasher: DigestHasher, expected: &Digest, what: &'static str) -> Result<(), Error> {
    let actual = hasher.finish();
    if actual == *expected {
        return Ok(());
    }
    Err(Error::Digest {
        what,
        expected: expected.clone(),
        actual,
    })
}

/// Compares the bytes of a layer that stream by with its declared size and digest.
pub(crate) struct BlobCheck<'a> {
    blob: &'a BlobRef,
    hasher: DigestHasher,
    seen: u64,
}

impl<'a> BlobCheck<'a> {
    pub(crate) fn new(blob: &'a BlobRef) -> Self {
        Self {
            blob,
            hasher: blob.digest.hasher(),
            seen: 0,
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.seen == self.blob.size
    }

    /// Takes the next bytes. Refuses the first byte beyond the declared size.
    pub(crate) fn update(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.seen += bytes.len() as u64;
        if self.seen > self.blob.size {
            return Err(wrong_size("layer", self.blob, self.seen));
        }
        self.hasher.update(bytes);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        if !self.is_complete() {
            return Err(wrong_size("layer", self.blob, self.seen));
        }
        finish(self.hasher, &self.blob.digest, "layer")
    }
}

/// Reports other bytes than a blob declares, by their number.
pub(crate) fn wrong_size(what: &'static str, blob: &BlobRef, actual: u64) -> Error {
    Error::Size {
        what,
        digest: blob.digest.clone(),
        declared: blob.size,
        actual,
    }
}
