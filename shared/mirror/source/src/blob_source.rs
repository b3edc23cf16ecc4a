//! The two places that hold an image's bytes, a registry and an OCI image layout on disk, behind
//! one interface.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fetch::Traffic;
use oci::{
    BlobRef, Digest, DigestHasher, ImageIndex, ImageLimits, NamedLimit, UnpackError, parse_document,
};
use tokio::sync::mpsc::Sender;

use crate::{Error, registry::Session, stream::blocking};

/// Size of a chunk. Large enough for few system calls, small enough to hold several in memory.
const CHUNK_BYTES: usize = 128 * 1024;

/// A place that holds manifests and blobs.
pub(crate) enum BlobSource {
    Registry(Box<Session>),
    Layout(Layout),
}

/// A folder with `index.json` and `blobs`.
pub(crate) struct Layout {
    pub(crate) dir: PathBuf,
    pub(crate) limits: ImageLimits,
}

impl BlobSource {
    /// Returns the manifest or index `digest`, verified.
    pub(crate) async fn manifest(&self, digest: &Digest) -> Result<Bytes, Error> {
        match self {
            Self::Registry(session) => session.manifest(digest).await,
            Self::Layout(layout) => verify(
                digest,
                "manifest",
                layout.blob(digest, layout.limits.manifest()).await?,
            ),
        }
    }

    /// Returns the bytes of the image config, which hash to its digest.
    pub(crate) async fn config(&self, blob: &BlobRef) -> Result<Bytes, Error> {
        match self {
            Self::Registry(session) => {
                let limit = session.settings.limits.config();
                session.small_blob("config", blob, limit).await
            }
            Self::Layout(layout) => {
                let body = layout.blob(&blob.digest, layout.limits.config()).await?;
                verify_blob(blob, "config", body)
            }
        }
    }

    /// Streams a blob into `to` and verifies it on the way. Fails with [`UnpackError::Abandoned`]
    /// if the receiver is dropped before the end.
    pub(crate) async fn stream(&self, blob: &BlobRef, to: Sender<Bytes>) -> Result<(), Error> {
        match self {
            Self::Registry(session) => session.stream(blob, to).await,
            Self::Layout(layout) => {
                let (path, blob) = (layout.path(&blob.digest), blob.clone());
                blocking(move || stream_file(&path, &blob, &to)).await
            }
        }
    }

    /// Returns the traffic so far. Reading a disk is none.
    pub(crate) fn traffic(&self) -> Traffic {
        match self {
            Self::Registry(session) => session.server.fetcher.traffic(),
            Self::Layout(_) => Traffic::default(),
        }
    }

    /// Replaces an error whose text repeats a secret that was sent.
    pub(crate) fn redacted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        match self {
            Self::Registry(session) => session.server.redacted(result),
            Self::Layout(_) => result,
        }
    }
}

impl Layout {
    /// Returns the digest that `index.json` has for `tag`, or its only digest.
    pub(crate) async fn resolve(&self, tag: Option<&str>) -> Result<Digest, Error> {
        let path = self.dir.join("index.json");
        let limit = self.limits.manifest();
        let body = blocking(move || read_file(&path, limit)).await?;
        let digest = Digest::of(&body);
        let index: ImageIndex = parse_document("index.json", &digest, &body)?;
        Ok(index.tagged(tag, &digest)?)
    }

    /// Returns the bytes of a small blob, not verified.
    pub(crate) async fn blob(&self, digest: &Digest, limit: NamedLimit) -> Result<Bytes, Error> {
        let path = self.path(digest);
        blocking(move || read_file(&path, limit)).await
    }

    pub(crate) fn path(&self, digest: &Digest) -> PathBuf {
        self.dir
            .join("blobs")
            .join(digest.algorithm())
            .join(digest.hex())
    }
}

/// Reads a small file into memory.
pub(crate) fn read_file(path: &Path, limit: NamedLimit) -> Result<Bytes, Error> {
    let failed = Error::reading(path);
    let mut body = Vec::new();
    let file = open_file(path).map_err(failed)?;
    let mut file = file.take(limit.value.saturating_add(1));
    file.read_to_end(&mut body).map_err(failed)?;
    limit.check(body.len() as u64, || path.display().to_string())?;
    Ok(body.into())
}

fn stream_file(path: &Path, blob: &BlobRef, to: &Sender<Bytes>) -> Result<(), Error> {
    let failed = Error::reading(path);
    let mut file = open_file(path).map_err(failed)?;
    let mut check = BlobCheck::new(blob);
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let mut next = file.by_ref().take(CHUNK_BYTES as u64);
        next.read_to_end(&mut chunk).map_err(failed)?;
        if chunk.is_empty() {
            return check.finish();
        }
        check.update(&chunk)?;
        to.blocking_send(chunk.into())
            .map_err(|_| UnpackError::Abandoned)?;
    }
}

/// Opens a regular file. A FIFO is refused before it is opened, because opening it waits for a
/// writer for ever.
fn open_file(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    File::open(path)
}

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
    match bytes.len() as u64 {
        size if size == blob.size => verify(&blob.digest, what, bytes),
        other => Err(wrong_size(what, blob, other)),
    }
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
