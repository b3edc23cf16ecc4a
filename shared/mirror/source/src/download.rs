//! Copies on disk, of archives and of images in registries that are too slow to be read while
//! others wait; and the space for all copies.

use std::env::temp_dir;
use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::Path;
use std::sync::Arc;

use fetch::{FetchError, FetchResponse, Traffic};
use futures_util::{TryStreamExt, stream};
use model::EmptyLayers;
use oci::{BlobRef, Digest, DigestHasher, LimitExceeded, NamedLimit, UnpackError};
use oci_client::Reference;
use tempfile::{NamedTempFile, TempDir};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;

use crate::layers::{SIDE_BY_SIDE, from_the_top};
use crate::server::WebSession;
use crate::stream::{blocking, within, write_chunks};
use crate::{Error, Source, Sources};

/// Part of a [`DownloadSpace`] that one image may take: a slow registry does not keep the space
/// from all others.
const SHARE: u64 = 4;

/// Bytes that one permit of the semaphore of a [`DownloadSpace`] stands for.
const PERMIT_BYTES: u64 = 1 << 20;

/// Size of the buffer of a reader. Large enough for few system calls.
const BUFFER_BYTES: usize = 128 * 1024;

/// Space in the folder for temporary files that the copies of all images may take at a time. Clones
/// share it.
#[derive(Debug, Clone)]
pub struct DownloadSpace {
    bytes: u64,
    permits: Arc<Semaphore>,
}

/// A copy of an image on disk. It is removed when it is dropped.
#[derive(Debug)]
pub struct Download {
    /// Source that [`Sources::read`] reads the copy from, by the digest of the image.
    pub source: Source,
    /// The cost of the copy.
    pub traffic: Traffic,
    _dir: TempDir,
    _space: OwnedSemaphorePermit,
}

/// A copy of a body in a temporary file, as it was received. The file is removed when the copy is
/// dropped.
#[derive(Debug)]
pub(crate) struct BodyCopy {
    file: NamedTempFile,
    /// Digest and size of the bytes in the file.
    pub(crate) blob: BlobRef,
    /// Cost of the answer, with the attempts before it.
    pub(crate) traffic: Traffic,
    _space: OwnedSemaphorePermit,
}

impl DownloadSpace {
    /// Default capacity: 4 GiB.
    pub const DEFAULT_BYTES: u64 = 4 << 30;

    /// Creates a space of this many bytes. One image may take a quarter of it.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            permits: Arc::new(Semaphore::new(permits(bytes))),
        }
    }

    /// Returns the number of bytes that all copies may take at a time.
    pub const fn capacity(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of bytes that are taken, in whole MiB.
    pub fn taken(&self) -> u64 {
        let free = self.permits.available_permits() as u64;
        (permits(self.bytes) as u64).saturating_sub(free) * PERMIT_BYTES
    }

    /// Returns the limit of one copy.
    pub(crate) const fn limit(&self) -> NamedLimit {
        NamedLimit::new("downloadBytes", self.bytes / SHARE)
    }

    /// Waits for space in the order of the requests, and takes it.
    ///
    /// # Errors
    /// [`LimitExceeded`] for a copy that may never take so much. `place` names it.
    pub(crate) async fn take(
        &self,
        bytes: u64,
        place: impl Fn() -> String,
    ) -> Result<OwnedSemaphorePermit, LimitExceeded> {
        self.limit().check(bytes, place)?;
        let permits = u32::try_from(permits(bytes)).unwrap_or(u32::MAX);
        let taken = Arc::clone(&self.permits).acquire_many_owned(permits).await;
        Ok(taken.expect("the semaphore is never closed"))
    }
}

/// Gives back what a copy of this size does not need of its space.
pub(crate) fn give_back(space: &mut OwnedSemaphorePermit, bytes: u64) {
    let unused = space.num_permits().saturating_sub(permits(bytes));
    drop(space.split(unused));
}

/// Returns the number of permits of a copy or of a space.
fn permits(bytes: u64) -> usize {
    let permits = usize::try_from(bytes / PERMIT_BYTES).unwrap_or(usize::MAX);
    permits.clamp(1, Semaphore::MAX_PERMITS)
}

impl Default for DownloadSpace {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

impl BodyCopy {
    /// Opens the copy at its start.
    pub(crate) fn open(&self) -> Result<BufReader<File>, Error> {
        let file = self
            .file
            .reopen()
            .map_err(Error::reading(self.file.path()))?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }

    /// Writes the body of an answer to a file while it arrives. Waits for space first, and holds a
    /// few chunks in memory.
    pub(crate) async fn receive(
        session: &WebSession<'_>,
        mut response: FetchResponse,
    ) -> Result<Self, Error> {
        let settings = session.settings;
        let (max, declared) = (settings.download_limit(), response.content_length());
        let place = || format!("the archive {}", session.server.place.text);
        // Without a declared length there must be space for the largest body. What is not used is
        // given back.
        let most = declared.unwrap_or(max.value);
        max.check(most, place)?;
        let mut space = settings.download_space.take(most, place).await?;
        let file =
            NamedTempFile::with_prefix("catalog-mirror-").map_err(Error::writing(&temp_dir()))?;
        let copy = file.reopen().map_err(Error::writing(file.path()))?;
        let received = write_chunks(copy, file.path().to_owned(), async |to| {
            let (mut hasher, mut received) = (DigestHasher::default(), 0);
            while let Some(chunk) = session.server.fetched(response.chunk().await)? {
                received += chunk.len() as u64;
                // A declared length may be missing or wrong.
                max.check(received, place)?;
                hasher.update(&chunk);
                to.send(chunk).await.map_err(|_| UnpackError::Abandoned)?;
            }
            match declared {
                Some(expected) if expected != received => Err(session
                    .server
                    .failed(FetchError::Truncated { received, expected })),
                _ => Ok(BlobRef {
                    digest: hasher.finish(),
                    size: received,
                }),
            }
        });
        let blob = received.await?;
        give_back(&mut space, blob.size);
        Ok(Self {
            file,
            blob,
            traffic: session.server.fetcher.traffic(),
            _space: space,
        })
    }
}

impl Sources {
    /// Copies what [`Self::read`] needs of the image `digest` to a folder for temporary files.
    /// Layers in `empty` are not copied. Holds no more of the image in memory than its manifests
    /// and a few chunks.
    ///
    /// # Errors
    /// As [`Self::read`], an image that is too large for the space of the settings, and a file that
    /// cannot be written.
    pub async fn download(
        &self,
        reference: &Reference,
        digest: &Digest,
        empty: &EmptyLayers,
    ) -> Result<Download, Error> {
        let blobs = self.registry_with(reference, digest).await?;
        let copying = async {
            let image = self.image(&blobs, digest).await?;
            let config = blobs.config(&image.manifest.config).await?;
            let root = self.root(&image.manifest, &config)?;
            let empty = empty.below(&root.path());
            let mut layers = from_the_top(&image.manifest);
            layers.retain(|layer| !empty.contains(layer.digest.as_str()));
            let place = || {
                "the layers of the image, which comes too slowly to be read without a copy on disk"
                    .to_owned()
            };
            let space = &self.settings.download_space;
            let space = space
                .take(layers.iter().map(|layer| layer.size).sum(), place)
                .await?;
            let dir = temporary_folder()?;
            let to = self.layout(dir.path());
            let config = (image.manifest.config.digest.clone(), config);
            for (digest, body) in image.documents.into_iter().chain([config]) {
                let path = to.path(&digest);
                blocking(move || {
                    create_file(&path)?
                        .write_all(&body)
                        .map_err(Error::writing(&path))
                })
                .await?;
            }
            let copy = async |layer: &BlobRef| {
                let path = to.path(&layer.digest);
                let (file, path) =
                    blocking(move || create_file(&path).map(|file| (file, path))).await?;
                write_chunks(file, path, |to| blobs.stream(layer, to)).await
            };
            let layers = stream::iter(layers.into_iter().map(Ok));
            layers.try_for_each_concurrent(SIDE_BY_SIDE, copy).await?;
            Ok::<_, Error>(Download {
                source: Source::OciLayout {
                    dir: to.dir,
                    tag: None,
                },
                traffic: blobs.traffic(),
                _dir: dir,
                _space: space,
            })
        };
        let copying =
            copying.instrument(tracing::info_span!("download", source = %reference, %digest));
        blobs.redacted(within(self.settings.pull_timeout, copying).await)
    }
}

/// Creates a folder for temporary files, which is removed when it is dropped.
pub(crate) fn temporary_folder() -> Result<TempDir, Error> {
    let path = temp_dir();
    TempDir::with_prefix_in("catalog-mirror-", &path).map_err(Error::writing(&path))
}

fn create_file(path: &Path) -> Result<File, Error> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder
        .and_then(|()| File::create(path))
        .map_err(Error::writing(path))
}
