use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use layout::Key;
use store::DOCUMENT_MAX;

use super::Archive;
use crate::{Body, Document, Origin, OriginError, origin::collect, plan::is_derived};

/// Read at a time.
const PIECE: usize = 256 << 10;

/// An archive is read as any other origin: what it does not hold is not found.
#[async_trait]
impl Origin for Archive {
    async fn document(&self, key: &Key, known: Option<&[u8]>) -> Result<Document, OriginError> {
        let bytes = collect(self.object(key, DOCUMENT_MAX).await?).await?;
        Ok(Document::of(bytes, known))
    }

    async fn object(&self, key: &Key, size: u64) -> Result<Body, OriginError> {
        let (file, extent) = self.extent(key).ok_or_else(|| absent(key))?;
        if extent.stored.size > size {
            return Err(OriginError::too_large(key, size));
        }
        let (key, end) = (key.to_string(), extent.offset + extent.stored.size);
        let reading = stream::try_unfold(extent.offset, move |offset| {
            let (file, key) = (file.clone(), key.clone());
            async move {
                if offset == end {
                    return Ok(None);
                }
                let piece = piece(file, offset, end).await;
                let piece = piece.map_err(|source| OriginError::Archive { key, source })?;
                let next = offset + piece.len() as u64;
                Ok(Some((piece, next)))
            }
        });
        Ok(reading.boxed())
    }
}

/// What can be made is asked for only when that failed.
fn absent(key: &Key) -> OriginError {
    if is_derived(key) {
        OriginError::LeftOut(key.to_string())
    } else {
        OriginError::NotFound(key.to_string())
    }
}

async fn piece(file: Arc<File>, offset: u64, end: u64) -> io::Result<Bytes> {
    let read = tokio::task::spawn_blocking(move || {
        let length = usize::try_from(end - offset).unwrap_or(usize::MAX).min(PIECE);
        let mut piece = vec![0; length];
        file.read_exact_at(&mut piece, offset)?;
        Ok(piece.into())
    });
    read.await.map_err(io::Error::other)?
}
