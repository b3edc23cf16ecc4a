//! An OCI image layout on disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use oci::{BlobRef, Digest, ImageIndex, ImageLimits, NamedLimit, UnpackError, parse_document};
use tokio::sync::mpsc::Sender;

use crate::Error;
use crate::blob_source::BlobCheck;
use crate::stream::blocking;

/// Size of a chunk. Large enough for few system calls, small enough to hold several in memory.
const CHUNK_BYTES: usize = 128 * 1024;

/// A folder with `index.json` and `blobs`.
pub(crate) struct Layout {
    pub(crate) dir: PathBuf,
    pub(crate) limits: ImageLimits,
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

    pub(crate) async fn stream(&self, blob: &BlobRef, to: Sender<Bytes>) -> Result<(), Error> {
        let (path, blob) = (self.path(&blob.digest), blob.clone());
        blocking(move || stream_file(&path, &blob, &to)).await
    }

    /// Returns the bytes of a small blob, not verified.
    pub(crate) async fn blob(&self, digest: &Digest, limit: NamedLimit) -> Result<Bytes, Error> {
        let path = self.path(digest);
        blocking(move || read_file(&path, limit)).await
    }

    pub(crate) fn path(&self, digest: &Digest) -> PathBuf {
        self.dir.join("blobs").join(digest.algorithm()).join(digest.hex())
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
        to.blocking_send(chunk.into()).map_err(|_| UnpackError::Abandoned)?;
    }
}

/// Opens a regular file. A FIFO is refused before it is opened, because opening it waits for a writer for ever.
fn open_file(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    File::open(path)
}
