//! Copies on disk, of archives and of images in registries that are too slow to be read while
//! others wait.

use std::env::temp_dir;
use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::Path;

use bytes::Bytes;
use fetch::{FetchError, FetchResponse, Traffic};
use futures_util::{TryStreamExt, stream};
use model::EmptyLayers;
use oci::{BlobRef, Digest, DigestHasher, UnpackError};
use tempfile::{NamedTempFile, TempDir};
use tokio::sync::OwnedSemaphorePermit;

use crate::blob_source::{BlobSource, Layout};
use crate::image::{find, root};
use crate::layers::{SIDE_BY_SIDE, from_the_top};
use crate::server::WebSession;
use crate::space::give_back;
use crate::stream::{blocking, write_chunks};
use crate::{Error, Source, SourceSettings};

/// Size of the buffer of a reader. Large enough for few system calls.
const BUFFER_BYTES: usize = 128 * 1024;

/// A copy of an image on disk. It is removed when it is dropped.
#[derive(Debug)]
pub struct Download {
    /// Source that [`Sources::read`](crate::Sources::read) reads the copy from, by the digest of the
    /// image.
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

impl BodyCopy {
    /// Opens the copy at its start.
    pub(crate) fn open(&self) -> Result<BufReader<File>, Error> {
        let failed = Error::reading(self.file.path());
        let file = self.file.reopen().map_err(failed)?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }

    /// Writes the body of an answer to a file while it arrives. Waits for space first, and holds a
    /// few chunks in memory.
    pub(crate) async fn receive(
        session: &WebSession<'_>,
        mut response: FetchResponse,
    ) -> Result<Self, Error> {
        let settings = session.settings;
        let max = settings.download_limit();
        let declared = response.content_length();
        let place = || format!("the archive {}", session.server.place.text);
        // Without a declared length there must be space for the largest body. What is not used is
        // given back.
        let most = declared.unwrap_or(max.value);
        max.check(most, place)?;
        let mut space = settings.download_space.take(most, place).await?;
        let file =
            NamedTempFile::with_prefix("catalog-mirror-").map_err(Error::writing(&temp_dir()))?;
        let copy = file.reopen().map_err(Error::writing(file.path()))?;
        let writing = write_chunks(copy, file.path().to_owned(), async |to| {
            let mut hasher = DigestHasher::default();
            let mut received = 0;
            while let Some(chunk) = session.server.fetched(response.chunk().await)? {
                received += chunk.len() as u64;
                // A declared length may be missing or wrong.
                max.check(received, place)?;
                hasher.update(&chunk);
                to.send(chunk).await.map_err(|_| UnpackError::Abandoned)?;
            }
            if let Some(expected) = declared
                && expected != received
            {
                let fault = FetchError::Truncated { received, expected };
                return Err(session.server.failed(fault));
            }
            Ok(BlobRef {
                digest: hasher.finish(),
                size: received,
            })
        });
        let blob = writing.await?;
        give_back(&mut space, blob.size);
        Ok(Self {
            file,
            blob,
            traffic: session.server.fetcher.traffic(),
            _space: space,
        })
    }
}

/// Copies what is read of the image `digest` to a folder for temporary files. Layers in `empty` are
/// not copied. Holds no more of the image in memory than its manifests and a few chunks.
pub(crate) async fn copy_image(
    blobs: &BlobSource,
    digest: &Digest,
    empty: &EmptyLayers,
    settings: &SourceSettings,
) -> Result<Download, Error> {
    let image = find(blobs, digest, settings).await?;
    let config = blobs.config(&image.manifest.config).await?;
    let root = root(&image.manifest, &config, settings)?;
    let empty = empty.below(&root.path());
    let mut layers = from_the_top(&image.manifest);
    layers.retain(|layer| !empty.contains(layer.digest.as_str()));

    let bytes = layers.iter().map(|layer| layer.size).sum();
    blobs.progress().expect(bytes);
    let space = settings.download_space.take(bytes, || {
        "the layers of the image, which comes too slowly to be read without a copy on disk"
            .to_owned()
    });
    let space = space.await?;
    let dir = temporary_folder()?;
    let copy = Layout {
        dir: dir.path().to_owned(),
        limits: settings.limits.clone(),
    };
    for (digest, body) in image.documents {
        write_blob(&copy, &digest, body).await?;
    }
    write_blob(&copy, &image.manifest.config.digest, config).await?;
    stream::iter(layers.into_iter().map(Ok))
        .try_for_each_concurrent(SIDE_BY_SIDE, |layer| copy_layer(blobs, layer, &copy))
        .await?;
    Ok(Download {
        source: Source::OciLayout {
            dir: copy.dir,
            tag: None,
        },
        traffic: blobs.traffic(),
        _dir: dir,
        _space: space,
    })
}

async fn write_blob(to: &Layout, digest: &Digest, body: Bytes) -> Result<(), Error> {
    let path = to.path(digest);
    blocking(move || {
        create_file(&path)?
            .write_all(&body)
            .map_err(Error::writing(&path))
    })
    .await
}

async fn copy_layer(blobs: &BlobSource, layer: &BlobRef, to: &Layout) -> Result<(), Error> {
    let path = to.path(&layer.digest);
    let created = path.clone();
    let file = blocking(move || create_file(&created)).await?;
    write_chunks(file, path, |chunks| blobs.stream(layer, chunks)).await
}

/// Creates a folder for temporary files, which is removed when it is dropped.
pub(crate) fn temporary_folder() -> Result<TempDir, Error> {
    let path = temp_dir();
    TempDir::with_prefix_in("catalog-mirror-", &path).map_err(Error::writing(&path))
}

fn create_file(path: &Path) -> Result<File, Error> {
    let failed = Error::writing(path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    File::create(path).map_err(failed)
}
