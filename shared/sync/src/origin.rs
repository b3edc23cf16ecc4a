use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use layout::Key;
use store::{DOCUMENT_MAX, Fetched, Get, Object, Store, StoreError};

use crate::http::HttpError;

/// Where a copy comes from: something that reads the keys of a mirror.
#[async_trait]
pub trait Origin: Debug + Send + Sync + 'static {
    /// Reads a mutable document of at most [`DOCUMENT_MAX`] bytes, unless it is still `known`.
    ///
    /// # Errors
    /// [`OriginError`]; [`OriginError::is_not_found`] where there is none.
    async fn document(&self, key: &Key, known: Option<&[u8]>) -> Result<Document, OriginError>;

    /// Reads an immutable object. A body of more than `size` bytes is an error; a shorter one is the caller's to notice.
    ///
    /// # Errors
    /// [`OriginError`], also as an item of the body.
    async fn object(&self, key: &Key, size: u64) -> Result<Body, OriginError>;
}

/// The bytes of an object as a stream of chunks.
pub type Body = BoxStream<'static, Result<Bytes, OriginError>>;

/// A mutable document, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// What is known already.
    Known,
    /// These bytes.
    Bytes(Bytes),
}

/// Why an origin could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// There is no such object.
    #[error("there is no {0}")]
    NotFound(String),
    /// There are more bytes than there should be.
    #[error("{key} has more than {max} bytes")]
    TooLarge {
        /// The object's key.
        key: String,
        /// What it should have at most.
        max: u64,
    },
    /// A store failed.
    #[error(transparent)]
    Store(StoreError),
    /// A server failed.
    #[error("cannot fetch {key}")]
    Http {
        /// The object's key.
        key: String,
        /// Why.
        source: HttpError,
    },
    /// An archive that leaves out what the receiving side was to make, and could not.
    #[error("{0} comes out otherwise here than where it was exported, and the archive does not hold it: export whole")]
    LeftOut(String),
    /// A file failed.
    #[error("cannot read {key} from the archive")]
    Archive {
        /// The object's key.
        key: String,
        /// Why.
        source: std::io::Error,
    },
}

impl OriginError {
    /// Whether there is no such object.
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

impl From<StoreError> for OriginError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { key } => Self::NotFound(key),
            error => Self::Store(error),
        }
    }
}

/// Another store.
#[derive(Debug)]
pub struct StoreOrigin(pub std::sync::Arc<dyn Store>);

#[async_trait]
impl Origin for StoreOrigin {
    async fn document(&self, key: &Key, known: Option<&[u8]>) -> Result<Document, OriginError> {
        let bytes = collect(self.object(key, DOCUMENT_MAX).await?).await?;
        Ok(Document::of(bytes, known))
    }

    async fn object(&self, key: &Key, size: u64) -> Result<Body, OriginError> {
        let Fetched::Object(Object { info, body }) = self.0.get(key, Get::default()).await? else {
            unreachable!("a read without `unless` always finds the object or fails");
        };
        if info.size > size {
            return Err(OriginError::too_large(key, size));
        }
        Ok(body.map_err(OriginError::from).boxed())
    }
}

impl Document {
    /// The bytes, or that they are the known ones.
    pub(crate) fn of(bytes: Bytes, known: Option<&[u8]>) -> Self {
        if known == Some(&bytes[..]) {
            Self::Known
        } else {
            Self::Bytes(bytes)
        }
    }
}

impl OriginError {
    pub(crate) fn too_large(key: &Key, max: u64) -> Self {
        Self::TooLarge {
            key: key.to_string(),
            max,
        }
    }
}

/// A whole body in memory; whoever made it bounds it.
pub(crate) async fn collect(body: Body) -> Result<Bytes, OriginError> {
    let mut all = Vec::new();
    let mut body = body;
    while let Some(chunk) = body.try_next().await? {
        all.extend_from_slice(&chunk);
    }
    Ok(all.into())
}
