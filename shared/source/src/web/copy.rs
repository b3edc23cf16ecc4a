//! A copy of a body in a temporary file.

use std::env::temp_dir;
use std::fs::File;
use std::io::{self, BufReader, Write};

use bytes::Bytes;
use oci::{BlobRef, DigestHasher, NamedLimit};
use tempfile::NamedTempFile;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;

use crate::download::give_back;
use crate::error::Error;
use crate::settings::SourceSettings;
use crate::stream::{CHUNKS_AHEAD, blocking};

/// Size of the buffer of a reader. Large enough for few system calls.
const BUFFER_BYTES: usize = 128 * 1024;

/// Bytes as they were received. The file is removed when the copy is dropped.
#[derive(Debug)]
pub(crate) struct BodyCopy {
    file: NamedTempFile,
    /// Digest and size of the bytes in the file.
    pub(crate) blob: BlobRef,
    _space: OwnedSemaphorePermit,
}

/// Writes a body to a file while it arrives. Holds a few chunks of it in memory.
pub(crate) struct BodyWriter {
    max: NamedLimit,
    /// Words for the body in errors.
    place: String,
    space: OwnedSemaphorePermit,
    to: Sender<Bytes>,
    writing: JoinHandle<Result<(NamedTempFile, BlobRef), Error>>,
}

impl BodyCopy {
    /// Opens the copy at its start.
    pub(crate) fn open(&self) -> Result<BufReader<File>, Error> {
        let file = self.file.reopen().map_err(Error::reading(self.file.path()))?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }
}

impl BodyWriter {
    /// Waits for space for a body of the declared length, and creates the file.
    pub(crate) async fn open(settings: &SourceSettings, declared: Option<u64>, place: String) -> Result<Self, Error> {
        let max = settings.download_limit();
        // Without a declared length there must be space for the largest body. What is not used is given back.
        let most = declared.unwrap_or(max.value);
        max.check(most, || place.clone())?;
        let space = settings.download_space.take(most, || place.clone()).await?;
        let file = NamedTempFile::with_prefix("catalog-mirror-").map_err(Error::writing(&temp_dir()))?;
        let (to, from) = mpsc::channel(CHUNKS_AHEAD);
        let writing = tokio::spawn(blocking(move || write(file, from)));
        Ok(Self {
            max,
            place,
            space,
            to,
            writing,
        })
    }

    /// Checks the number of bytes that were received so far. A declared length may be missing or wrong.
    pub(crate) fn check(&self, received: u64) -> Result<(), Error> {
        Ok(self.max.check(received, || self.place.clone())?)
    }

    /// Writes the next bytes.
    pub(crate) async fn write(&mut self, chunk: Bytes) -> Result<(), Error> {
        if self.to.send(chunk).await.is_ok() {
            return Ok(());
        }
        // The thread ends early only with an error, such as a full disk.
        let written = (&mut self.writing).await.map_err(Error::Task)?;
        Err(written.err().unwrap_or(Error::Abandoned))
    }

    /// Returns the copy after the last byte.
    pub(crate) async fn finish(self) -> Result<BodyCopy, Error> {
        let Self {
            mut space, to, writing, ..
        } = self;
        drop(to);
        let (file, blob) = writing.await.map_err(Error::Task)??;
        give_back(&mut space, blob.size);
        Ok(BodyCopy {
            file,
            blob,
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
