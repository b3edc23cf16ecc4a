//! A copy of an archive in a temporary file.

use std::fs::File;
use std::io::{self, BufReader, Write};

use bytes::Bytes;
use fetch::{FetchError, FetchResponse};
use oci::{BlobRef, DigestHasher, LimitExceeded};
use tempfile::NamedTempFile;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::download::permits_for;
use crate::error::Error;
use crate::layers::CHUNKS_AHEAD;
use crate::layout::blocking;
use crate::settings::SourceSettings;
use crate::web::WebSession;

/// Size of the buffer of a reader. Large enough for few system calls.
const BUFFER_BYTES: usize = 128 * 1024;

/// An archive as it was received. The file is removed when the copy is dropped.
#[derive(Debug)]
pub(crate) struct ArchiveCopy {
    file: NamedTempFile,
    /// Digest and size of the bytes in the file.
    pub(crate) blob: BlobRef,
    _space: OwnedSemaphorePermit,
}

impl ArchiveCopy {
    /// Writes the body of `response` to a file. Holds a few chunks of it in memory.
    pub(crate) async fn receive(
        session: &WebSession,
        settings: &SourceSettings,
        response: FetchResponse,
    ) -> Result<Self, Error> {
        let max = SizeLimit::of(settings);
        // Without a declared length there must be space for the largest archive. What is not used is given back.
        let most = response.content_length().unwrap_or(max.bytes);
        let place = session.shown();
        max.check(most, place)?;
        let mut space = settings
            .download_space
            .take(most, || format!("the archive {place}"))
            .await?;
        let file = NamedTempFile::with_prefix("catalog-mirror-").map_err(|source| Error::Write {
            path: std::env::temp_dir(),
            source,
        })?;
        let (to, from) = mpsc::channel(CHUNKS_AHEAD);
        let writing = blocking(move || write(file, from));
        let (received, written) = tokio::join!(forward(session, response, &max, to), writing);
        // A body whose receiver is gone ends without an error, so a full disk is named first.
        let (file, blob) = written?;
        received?;
        let unused = space.num_permits().saturating_sub(permits_for(blob.size));
        drop(space.split(unused));
        Ok(Self {
            file,
            blob,
            _space: space,
        })
    }

    /// Opens the copy at its start.
    pub(crate) fn open(&self) -> Result<BufReader<File>, Error> {
        let file = self.file.reopen().map_err(|source| Error::Io {
            path: self.file.path().to_owned(),
            source,
        })?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }
}

/// Maximum size of an archive, with the name of the limit that decides it.
struct SizeLimit {
    name: &'static str,
    bytes: u64,
}

impl SizeLimit {
    fn of(settings: &SourceSettings) -> Self {
        let (image, space) = (settings.limits.compressed_bytes, settings.download_space.share());
        if space < image {
            let name = "downloadBytes";
            Self { name, bytes: space }
        } else {
            let name = "compressedBytes";
            Self { name, bytes: image }
        }
    }

    fn check(&self, bytes: u64, url: &str) -> Result<(), Error> {
        if bytes <= self.bytes {
            return Ok(());
        }
        Err(Error::Limit(LimitExceeded {
            name: self.name,
            limit: self.bytes,
            place: format!("the archive {url}"),
        }))
    }
}

async fn forward(
    session: &WebSession,
    mut response: FetchResponse,
    max: &SizeLimit,
    to: Sender<Bytes>,
) -> Result<(), Error> {
    let declared = response.content_length();
    let mut received = 0;
    while let Some(chunk) = response.chunk().await.map_err(|failed| session.fetch_failed(failed))? {
        received += chunk.len() as u64;
        // Counted as it comes: a declared length may be missing.
        max.check(received, session.shown())?;
        if to.send(chunk).await.is_err() {
            return Ok(());
        }
    }
    match declared {
        Some(expected) if expected != received => Err(session.failed(FetchError::Truncated { received, expected })),
        _ => Ok(()),
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
    match write() {
        Ok(()) => {
            let digest = hasher.finish();
            Ok((file, BlobRef { digest, size }))
        }
        Err(source) => Err(Error::Write {
            path: file.path().to_owned(),
            source,
        }),
    }
}
