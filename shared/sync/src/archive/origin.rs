use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use model::Key;
use store::DOCUMENT_MAX;

use super::Archive;
use crate::{Origin, OriginBody, OriginDocument, OriginError, origin::collect};

/// Size of one read, in bytes. A chunk is hashed and written as a whole, so larger ones only cost memory.
const CHUNK_BYTES: usize = 256 << 10;

/// Reads an archive like any other origin. An object that is not in it is not found.
#[async_trait]
impl Origin for Archive {
    async fn document(&self, key: &Key, known: Option<&[u8]>) -> Result<OriginDocument, OriginError> {
        let bytes = collect(self.object(key, DOCUMENT_MAX).await?).await?;
        Ok(OriginDocument::new(bytes, known))
    }

    async fn object(&self, key: &Key, size: u64) -> Result<OriginBody, OriginError> {
        let (file, extent) = self.extent(key).ok_or_else(|| not_in_archive(key))?;
        if extent.digest.size > size {
            return Err(OriginError::too_large(key, size));
        }
        let (key, end) = (key.to_string(), extent.offset + extent.digest.size);
        let chunks = stream::try_unfold(extent.offset, move |offset| {
            let (file, key) = (file.clone(), key.clone());
            async move {
                if offset == end {
                    return Ok(None);
                }
                let chunk = read_chunk(file, offset, end).await;
                let chunk = chunk.map_err(|source| OriginError::Archive { key, source })?;
                let next = offset + chunk.len() as u64;
                Ok(Some((chunk, next)))
            }
        });
        Ok(chunks.boxed())
    }
}

/// Returns the error for an object that the archive does not hold.
fn not_in_archive(key: &Key) -> OriginError {
    // A derived object is asked for only after it could not be made from the Shards.
    if key.is_derived() {
        OriginError::LeftOut(key.to_string())
    } else {
        OriginError::NotFound(key.to_string())
    }
}

async fn read_chunk(file: Arc<File>, offset: u64, end: u64) -> io::Result<Bytes> {
    let read = tokio::task::spawn_blocking(move || {
        let length = usize::try_from(end - offset).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let mut chunk = vec![0; length];
        file.read_exact_at(&mut chunk, offset)?;
        Ok(chunk.into())
    });
    read.await.map_err(io::Error::other)?
}
