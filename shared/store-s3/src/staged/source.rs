use std::{fs::File, io, ops::Range, os::unix::fs::FileExt as _, sync::Arc};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use layout::Key;
use store::{Fetched, Get, Operation, StoreError, Version};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::spawn_blocking,
};

use super::{PART, PARTS_IN_MEMORY};
use crate::S3Store;

/// Up to here an object is sent with one request: two parts, as a multipart upload takes two more requests than parts.
const ONE_PUT: u64 = 2 * PART;

/// The bytes of an object that is to be written.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Memory(Bytes),
    File { file: Arc<File>, size: u64 },
}

impl From<Bytes> for Source {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

impl Source {
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { size, .. } => *size,
        }
    }

    pub(crate) fn needs_parts(&self) -> bool {
        self.size() > ONE_PUT
    }

    /// The parts of a multipart upload.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let size = self.size();
        let starts = (0..size.div_ceil(PART)).map(|part| part * PART);
        starts.map(move |start| start..size.min(start + PART))
    }

    /// Waits until there is memory for the whole object; one that is in memory already needs none.
    pub(crate) async fn reserve<'a>(&self, memory: &'a Semaphore) -> Option<SemaphorePermit<'a>> {
        match self {
            Self::Memory(_) => None,
            Self::File { size, .. } => {
                let parts = u32::try_from(size.div_ceil(PART)).unwrap_or(u32::MAX);
                let permits = memory.acquire_many(parts.min(PARTS_IN_MEMORY as u32)).await;
                Some(permits.expect("nobody closes it"))
            }
        }
    }

    pub(crate) async fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let length = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        match self {
            Self::Memory(bytes) => {
                let start = usize::try_from(range.start).map_err(io::Error::other)?;
                Ok(bytes.slice(start..start + length))
            }
            Self::File { file, .. } => {
                let file = Arc::clone(file);
                spawn_blocking(move || read_at(&file, range.start, length)).await?
            }
        }
    }

    /// The version of the stored object, if that has the very same bytes.
    pub(crate) async fn same_as(&self, store: &S3Store, key: &Key) -> Result<Option<Version>, StoreError> {
        let object = match store.read(key, Get::default()).await {
            Ok(Fetched::Object(object)) => object,
            Ok(Fetched::NotModified) => return Ok(None),
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let (mut body, mut at) = (object.body, 0);
        if object.info.size != self.size() {
            return Ok(None);
        }
        while let Some(chunk) = body.try_next().await? {
            let ours = self.read(at..at + chunk.len() as u64).await;
            let ours = ours.map_err(|error| StoreError::failed(Operation::Put, key, error))?;
            if ours != chunk {
                return Ok(None);
            }
            at += chunk.len() as u64;
        }
        Ok(Some(object.info.version))
    }
}

fn read_at(file: &File, start: u64, length: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes.into())
}
