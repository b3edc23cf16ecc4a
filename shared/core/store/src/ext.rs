use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::{TryStreamExt as _, stream::BoxStream};
use model::{Document, DocumentError, Key, Sha256};

use crate::{
    Condition, Fetched, Get, Object, ObjectInfo, Operation, ReadStore, Store, StoreError, Version,
};

/// Maximum size of a document that is read into memory, in bytes. It is far above a snapshot of
/// 100,000 packages and far below the memory of the smallest Lambda.
pub const DOCUMENT_MAX: u64 = 32 << 20;

/// Failure to read a whole object or document.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store failed, or has no such object.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The object is larger than the caller wants to hold.
    #[error("{key} has {size} bytes, more than the {max} that are read at once")]
    TooLarge {
        /// Key of the object, as a path.
        key: String,
        /// Size of the whole object in bytes.
        size: u64,
        /// Maximum size that the caller accepts, in bytes.
        max: u64,
    },
    /// The object is not a valid document of its kind.
    #[error("{key} cannot be used")]
    Document {
        /// Key of the object, as a path.
        key: String,
        /// The underlying error, which the chain prints after this one.
        source: DocumentError,
    },
    /// The bytes of an immutable object do not hash to its key.
    #[error("{key} is damaged: its bytes have the sha256 {found}")]
    Damaged {
        /// Key of the object, as a path.
        key: String,
        /// Hash of the bytes that are there.
        found: Sha256,
    },
}

impl ReadError {
    /// True if there is no such object.
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_not_found())
    }

    /// True if the object is there and is not what it should be. A store that cannot be asked is
    /// not damage.
    pub const fn is_damage(&self) -> bool {
        !matches!(self, Self::Store(_))
    }
}

/// Turns the error of a missing object into `None`.
///
/// # Errors
/// All other errors of the read.
pub fn optional<T>(read: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match read {
        Err(error) if error.is_not_found() => Ok(None),
        read => read.map(Some),
    }
}

/// Operations that every store has in the same way.
#[async_trait]
pub trait StoreExt: ReadStore {
    /// Opens an object to read all of it, or a part of it.
    ///
    /// # Errors
    /// As [`ReadStore::get`].
    async fn open(&self, key: &Key, range: Option<Range<u64>>) -> Result<Object, StoreError> {
        let get = Get {
            range,
            unless: None,
        };
        match self.get(key, get).await? {
            Fetched::Object(object) => Ok(object),
            Fetched::NotModified => {
                let reason = "the store answered a condition that was not asked";
                Err(StoreError::failed(Operation::Get, key, reason))
            }
        }
    }

    /// Reads a whole object of at most `max` bytes.
    ///
    /// # Errors
    /// As [`ReadStore::get`], and [`ReadError::TooLarge`].
    async fn read_all(&self, key: &Key, max: u64) -> Result<(Bytes, ObjectInfo), ReadError> {
        let Object { info, body } = self.open(key, None).await?;
        if info.size > max {
            return Err(ReadError::TooLarge {
                key: key.to_string(),
                size: info.size,
                max,
            });
        }
        Ok((collect(body, info.size).await?, info))
    }

    /// Reads a document, and the version that [`Condition::Replace`] needs. Returns `None` if there
    /// is none yet.
    ///
    /// # Errors
    /// As [`StoreExt::read_all`] with [`DOCUMENT_MAX`], and [`ReadError::Document`].
    async fn read_document<T: Document>(
        &self,
        key: &Key,
    ) -> Result<Option<(T, Version)>, ReadError> {
        let Some((bytes, info)) = optional(self.read_all(key, DOCUMENT_MAX).await)? else {
            return Ok(None);
        };
        let document = T::from_bytes(&bytes).map_err(|source| ReadError::Document {
            key: key.to_string(),
            source,
        })?;
        Ok(Some((document, info.version)))
    }

    /// Writes a document in its canonical form if its object still has the version `before`, or if
    /// there is still none. Returns the new version; `None` if another writer was faster.
    ///
    /// # Errors
    /// As [`Store::put`], a conflict excepted.
    async fn swap_document<T: Document + Sync>(
        &self,
        key: &Key,
        document: &T,
        before: Option<Version>,
    ) -> Result<Option<Version>, StoreError>
    where
        Self: Store,
    {
        let condition = match before {
            Some(version) => Condition::Replace(version),
            None => Condition::CreateOnly,
        };
        match self.put(key, document.to_bytes().into(), condition).await {
            Err(error) if error.is_conflict() => Ok(None),
            written => written.map(Some),
        }
    }
}

impl<S: ReadStore + ?Sized> StoreExt for S {}

/// Joins the chunks of a body of about `expected` bytes. A small object comes as one chunk, which
/// is passed on without a copy. A store that sends more than it announced is not read on.
///
/// # Errors
/// Those of the body.
pub async fn collect<E>(
    mut body: BoxStream<'static, Result<Bytes, E>>,
    expected: u64,
) -> Result<Bytes, E> {
    let Some(first) = body.try_next().await? else {
        return Ok(Bytes::new());
    };
    let Some(second) = body.try_next().await? else {
        return Ok(first);
    };
    let mut all = BytesMut::with_capacity(usize::try_from(expected).unwrap_or_default());
    all.extend_from_slice(&first);
    all.extend_from_slice(&second);
    while (all.len() as u64) <= expected
        && let Some(chunk) = body.try_next().await?
    {
        all.extend_from_slice(&chunk);
    }
    Ok(all.freeze())
}
