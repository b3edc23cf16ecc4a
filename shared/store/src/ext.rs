use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use layout::{Document, DocumentError, Key};

use crate::{Condition, Fetched, Get, Object, ObjectInfo, Store, StoreError, Version};

/// The largest document that is read: far above a snapshot of 100,000 packages, far below the smallest machine.
pub const DOCUMENT_MAX: u64 = 32 << 20;

/// Why a whole object could not be read into memory.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is larger than the caller wants to hold.
    #[error("{key} has {size} bytes, more than the {max} that are read at once")]
    TooLarge {
        /// The object's key.
        key: String,
        /// The object's size in bytes.
        size: u64,
        /// The most that was wanted.
        max: u64,
        /// The state that was found.
        version: Version,
    },
    /// It is not the document that it should be.
    #[error("{key} cannot be used")]
    Document {
        /// The object's key.
        key: String,
        /// What is wrong with it.
        source: DocumentError,
    },
}

impl ReadError {
    /// Whether there is no such object.
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_not_found())
    }
}

/// What callers do with every store.
#[async_trait]
pub trait StoreExt: Store {
    /// Reads a whole object of at most `max` bytes.
    ///
    /// # Errors
    /// As [`Store::get`], and [`ReadError::TooLarge`].
    async fn read_all(&self, key: &Key, max: u64) -> Result<(Bytes, ObjectInfo), ReadError> {
        let Fetched::Object(Object { info, body }) = self.get(key, Get::default()).await? else {
            unreachable!("a read without `unless` always finds the object or fails");
        };
        if info.size > max {
            return Err(ReadError::TooLarge {
                key: key.to_string(),
                size: info.size,
                max,
                version: info.version,
            });
        }
        Ok((collect(body).await?, info))
    }

    /// Reads a document and the version to replace it by; `None` where there is none yet.
    ///
    /// # Errors
    /// As [`StoreExt::read_all`] with [`DOCUMENT_MAX`], and [`ReadError::Document`].
    async fn read_document<T: Document>(&self, key: &Key) -> Result<Option<(T, Version)>, ReadError> {
        let (bytes, info) = match self.read_all(key, DOCUMENT_MAX).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let document = T::from_bytes(&bytes).map_err(|source| ReadError::Document {
            key: key.to_string(),
            source,
        })?;
        Ok(Some((document, info.version)))
    }

    /// Writes a document.
    ///
    /// # Errors
    /// As [`Store::put`].
    async fn write_document<T: Document + Sync>(
        &self,
        key: &Key,
        document: &T,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        self.put(key, document.to_bytes().into(), condition).await
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

/// Small objects come as one chunk, which is passed on uncopied.
async fn collect(mut body: crate::Body) -> Result<Bytes, StoreError> {
    let Some(first) = body.try_next().await? else {
        return Ok(Bytes::new());
    };
    let Some(second) = body.try_next().await? else {
        return Ok(first);
    };
    let mut all = BytesMut::from(first);
    all.extend_from_slice(&second);
    while let Some(chunk) = body.try_next().await? {
        all.extend_from_slice(&chunk);
    }
    Ok(all.freeze())
}
