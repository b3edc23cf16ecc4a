//! The two places that hold an image's bytes, a registry and an OCI image layout on disk, behind
//! one interface.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fetch::Traffic;
use oci::{BlobRef, Digest, ImageIndex, ImageLimits, NamedLimit, UnpackError, parse_document};
use tokio::sync::mpsc::Sender;

use crate::registry::Session;
use crate::stream::blocking;
use crate::verify::{BlobCheck, verify, verify_blob};
use crate::{Error, PullProgress};

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
            Self::Layout(layout) => {
                let body = layout.blob(digest, layout.limits.manifest()).await?;
                verify(digest, "manifest", body)
            }
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
                let path = layout.path(&blob.digest);
                let blob = blob.clone();
                blocking(move || stream_file(&path, &blob, &to)).await
            }
        }
    }

    /// Returns the counts of what is received. What is read from a disk counts nowhere.
    pub(crate) fn progress(&self) -> Arc<PullProgress> {
        match self {
            Self::Registry(session) => session.settings.progress.clone(),
            Self::Layout(_) => Arc::default(),
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
    let file = work::open_file(path).map_err(failed)?;
    let mut file = file.take(limit.value.saturating_add(1));
    file.read_to_end(&mut body).map_err(failed)?;
    limit.check(body.len() as u64, || path.display().to_string())?;
    Ok(body.into())
}

fn stream_file(path: &Path, blob: &BlobRef, to: &Sender<Bytes>) -> Result<(), Error> {
    let failed = Error::reading(path);
    let mut file = work::open_file(path).map_err(failed)?;
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
