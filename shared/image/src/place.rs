//! Where an image's bytes lie: a registry or a layout on disk, behind one face.

use bytes::Bytes;
use tokio::sync::mpsc::Sender;

use crate::digest::{Digest, Hasher};
use crate::error::Error;
use crate::layout::Layout;
use crate::manifest::Blob;
use crate::registry::Session;

/// A place to fetch from.
pub(crate) enum Place {
    Registry(Session),
    Layout(Layout),
}

/// How fetching a layer ended, if nothing failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// To its last byte, and the digest is right.
    Verified,
    /// Nobody wants the rest.
    Unwanted,
}

impl Place {
    /// The manifest or index `digest`, verified.
    pub(crate) async fn manifest(&self, digest: &Digest) -> Result<Bytes, Error> {
        match self {
            Self::Registry(session) => session.manifest(digest).await,
            Self::Layout(layout) => layout.manifest(digest).await,
        }
    }

    /// A small blob in one piece, verified.
    pub(crate) async fn config(&self, blob: &Blob) -> Result<Bytes, Error> {
        match self {
            Self::Registry(session) => session.config(blob).await,
            Self::Layout(layout) => layout.config(blob).await,
        }
    }

    /// Streams a blob into `to`, verifying it on the way.
    pub(crate) async fn stream(&self, blob: &Blob, to: Sender<Bytes>) -> Result<Fetched, Error> {
        match self {
            Self::Registry(session) => session.stream(blob, to).await,
            Self::Layout(layout) => layout.stream(blob, to).await,
        }
    }

    /// Bytes received over the wire and requests sent so far. Reading a disk is neither.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        match self {
            Self::Registry(session) => session.traffic(),
            Self::Layout(_) => (0, 0),
        }
    }
}

/// Checks bytes that stream by against a declared size and digest.
pub(crate) struct Check<'a> {
    blob: &'a Blob,
    what: &'static str,
    hasher: Hasher,
    seen: u64,
}

impl<'a> Check<'a> {
    pub(crate) fn new(what: &'static str, blob: &'a Blob) -> Self {
        Self {
            blob,
            what,
            hasher: blob.digest.hasher(),
            seen: 0,
        }
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.seen == self.blob.size
    }

    /// Takes the next bytes; refuses the first one beyond the declared size.
    pub(crate) fn update(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.seen += bytes.len() as u64;
        if self.seen > self.blob.size {
            return Err(self.size());
        }
        self.hasher.update(bytes);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        if !self.is_complete() {
            return Err(self.size());
        }
        let (expected, actual) = (self.blob.digest.clone(), self.hasher.finish());
        if actual == expected {
            Ok(())
        } else {
            Err(Error::Digest {
                what: self.what,
                expected,
                actual,
            })
        }
    }

    fn size(&self) -> Error {
        let digest = self.blob.digest.clone();
        Error::Size {
            what: self.what,
            digest,
            declared: self.blob.size,
            actual: self.seen,
        }
    }
}
