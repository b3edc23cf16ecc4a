//! A copy of a body in a temporary file.

use std::env::temp_dir;
use std::fs::File;
use std::io::{self, BufReader, Write};

use bytes::Bytes;
use fetch::{FetchError, FetchResponse, Traffic};
use oci::{BlobRef, DigestHasher, UnpackError};
use tempfile::NamedTempFile;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Receiver};

use crate::download::give_back;
use crate::error::Error;
use crate::stream::{CHUNKS_AHEAD, blocking};
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
        let (to, from) = mpsc::channel(CHUNKS_AHEAD);
        let receiving = async move {
            let mut received = 0;
            let report = |failed| session.server.fetch_failed(failed);
            while let Some(chunk) = response.chunk().await.map_err(report)? {
                received += chunk.len() as u64;
                // A declared length may be missing or wrong.
                max.check(received, place)?;
                if to.send(chunk).await.is_err() {
                    return Err(UnpackError::Abandoned.into());
                }
            }
            match declared {
                Some(expected) if expected != received => {
                    Err(session.server.failed(FetchError::Truncated { received, expected }))
                }
                _ => Ok(()),
            }
        };
        let (received, written) = tokio::join!(receiving, blocking(move || write(file, from)));
        // A body whose file cannot be written is not received further, so a full disk is named first.
        let (file, blob) = written?;
        received?;
        give_back(&mut space, blob.size);
        Ok(Self {
            file,
            blob,
            traffic: session.server.fetcher.traffic(),
            _space: space,
        })
    }
}

/// Writes and hashes chunks to the end of the channel.
fn write(mut file: NamedTempFile, mut from: Receiver<Bytes>) -> Result<(NamedTempFile, BlobRef), Error> {
    let mut hasher = DigestHasher::default();
    let mut size = 0;
    let mut write = || -> io::Result<()> {
        while let Some(chunk) = from.blocking_recv() {
            hasher.update(&chunk);
            size += chunk.len() as u64;
            file.write_all(&chunk)?;
        }
        file.flush()
    };
    write().map_err(Error::writing(file.path()))?;
    let digest = hasher.finish();
    Ok((file, BlobRef { digest, size }))
}
