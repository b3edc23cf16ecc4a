//! A copy of a body in a temporary file.

use std::env::temp_dir;
use std::fs::File;
use std::io::BufReader;

use fetch::{FetchError, FetchResponse, Traffic};
use oci::{BlobRef, DigestHasher, UnpackError};
use tempfile::NamedTempFile;
use tokio::sync::OwnedSemaphorePermit;

use crate::Error;
use crate::download::give_back;
use crate::stream::write_chunks;
use crate::web::WebSession;

/// Size of the buffer of a reader. Large enough for few system calls.
const BUFFER_BYTES: usize = 128 * 1024;

/// Bytes as they were received. The file is removed when the copy is dropped.
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
        let file = self.file.reopen().map_err(Error::reading(self.file.path()))?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }

    /// Writes the body of an answer to a file while it arrives. Waits for space first, and holds a few chunks in memory.
    pub(crate) async fn receive(session: &WebSession<'_>, mut response: FetchResponse) -> Result<Self, Error> {
        let settings = session.settings;
        let (max, declared) = (settings.download_limit(), response.content_length());
        let place = || format!("the archive {}", session.server.place.text);
        // Without a declared length there must be space for the largest body. What is not used is given back.
        let most = declared.unwrap_or(max.value);
        max.check(most, place)?;
        let mut space = settings.download_space.take(most, place).await?;
        let file = NamedTempFile::with_prefix("catalog-mirror-").map_err(Error::writing(&temp_dir()))?;
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
                Some(expected) if expected != received => {
                    Err(session.server.failed(FetchError::Truncated { received, expected }))
                }
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
