//! Objects that are written piece by piece. They are kept in memory while they are small, then in
//! an unnamed file, and sent when their key is known.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use async_trait::async_trait;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http_body::Frame;
use http_body_util::StreamBody;
use model::{Key, Sha256};
use tempfile::{SpooledData, SpooledTempFile};
use tokio::task::spawn_blocking;

use crate::{
    Condition, Operation, Staged, StoreError, Version, file_chunks, integrity::hash, s3::S3Store,
};

/// Number of bytes of an object that are kept in memory before they go to the file. Small catalogs
/// touch no disk.
const MEMORY: usize = 1 << 20;

/// Object that is being written, in memory or in a file without a name, which goes with its handle,
/// also after a crash.
pub(crate) struct StagedObject {
    store: S3Store,
    size: u64,
    /// `None` once a write failed or was dropped half way: the end of the file is not known then.
    spool: Option<SpooledTempFile>,
}

impl StagedObject {
    pub(crate) fn new(store: S3Store) -> Self {
        Self {
            store,
            size: 0,
            spool: Some(SpooledTempFile::new(MEMORY)),
        }
    }

    fn take(&mut self) -> Result<SpooledTempFile, StoreError> {
        let spool = self.spool.take();
        spool.ok_or_else(|| failed(io::Error::other("an earlier write to it did not succeed")))
    }
}

fn failed(error: io::Error) -> StoreError {
    StoreError::failed(Operation::Put, &"a temporary file", error)
}

#[async_trait]
impl Staged for StagedObject {
    #[expect(
        clippy::disallowed_methods,
        reason = "only bytes are moved, and nothing is parsed"
    )]
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        let mut spool = self.take()?;
        self.size += bytes.len() as u64;
        let work = spawn_blocking(move || spool.write_all(&bytes).map(|()| spool));
        let written = work.await.map_err(io::Error::from).flatten();
        self.spool = Some(written.map_err(failed)?);
        Ok(())
    }

    async fn commit(
        mut self: Box<Self>,
        key: &Key,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        let source = match self.take()?.into_inner() {
            SpooledData::InMemory(bytes) => ObjectBytes::Memory(bytes.into_inner().into()),
            SpooledData::OnDisk(file) => ObjectBytes::File {
                file: Arc::new(file),
                size: self.size,
            },
        };
        self.store.write(key, &source, &condition).await
    }
}

/// Bytes of an object that is to be written.
#[derive(Debug, Clone)]
pub(crate) enum ObjectBytes {
    Memory(Bytes),
    File { file: Arc<File>, size: u64 },
}

impl ObjectBytes {
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { size, .. } => *size,
        }
    }

    /// Returns the sha256 that the bytes must have. The name of an immutable object is that hash.
    /// It is not computed again: the server compares it with what it receives, so other bytes
    /// cannot get under the name.
    pub(crate) async fn sha256(&self, key: &Key) -> io::Result<Sha256> {
        match (key, self) {
            (Key::Object(_, sha256), _) => Ok(*sha256),
            (_, Self::Memory(bytes)) => Ok(Sha256::of(bytes)),
            (_, Self::File { file, size }) => {
                hash(file_chunks(Arc::clone(file), 0..*size).boxed()).await
            }
        }
    }

    /// Returns the body of a request. The SDK can start it again for each attempt.
    pub(crate) fn body(&self) -> SdkBody {
        match self {
            Self::Memory(bytes) => bytes.clone().into(),
            Self::File { file, size } => {
                let file = Arc::clone(file);
                let size = *size;
                SdkBody::retryable(move || {
                    let chunks = file_chunks(Arc::clone(&file), 0..size);
                    SdkBody::from_body_1_x(StreamBody::new(chunks.map_ok(Frame::data)))
                })
            }
        }
    }
}
