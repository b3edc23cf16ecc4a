use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use fetch::{AttemptCount, FailedFetch, FetchError, RequestError};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use model::{CatalogName, Catalogs, Document, DocumentError, Key};
use publish::catalog_names;
use store::{DOCUMENT_MAX, Object, ReadError, Store, StoreError, StoreExt, collect};

/// A mirror to copy from: a server, a store or an archive.
#[async_trait]
pub trait Origin: Debug + Send + Sync + 'static {
    /// Returns a mutable document of at most [`DOCUMENT_MAX`] bytes. A server sends nothing if they are still the `known` ones.
    ///
    /// # Errors
    /// [`OriginError`]; [`OriginError::NotFound`] if there is no such document.
    async fn document(&self, key: &Key, _known: Option<&Bytes>) -> Result<Bytes, OriginError> {
        collect(self.object(key, DOCUMENT_MAX).await?, DOCUMENT_MAX).await
    }

    /// Reads an immutable object of `size` bytes. A larger body is an error; the caller must notice a shorter one.
    ///
    /// # Errors
    /// [`OriginError`], also as an item of the body.
    async fn object(&self, key: &Key, size: u64) -> Result<OriginBody, OriginError>;

    /// Returns the names of all catalogs, from `catalogs.json`.
    ///
    /// # Errors
    /// [`OriginError`] if the document is missing or cannot be read.
    async fn names(&self) -> Result<BTreeSet<CatalogName>, OriginError> {
        let bytes = self.document(&Key::Catalogs, None).await?;
        let catalogs = Catalogs::from_bytes(&bytes).map_err(OriginError::Names)?;
        Ok(catalogs.catalogs)
    }
}

/// Bytes of an object as a stream of chunks.
pub type OriginBody = BoxStream<'static, Result<Bytes, OriginError>>;

/// An origin that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// The origin has no such object.
    #[error("there is no {0}")]
    NotFound(String),
    /// The origin has the object and does not give it, or not as it should be. Holds the reason for people.
    #[error("{0}")]
    Refused(String),
    /// The list of catalogs cannot be used.
    #[error("cannot use the list of catalogs")]
    Names(#[source] DocumentError),
    /// A store that is the origin failed, or a document of it cannot be read.
    #[error(transparent)]
    Store(ReadError),
    /// A server failed, or could not be reached.
    #[error("cannot fetch {key}{attempts}")]
    Fetch {
        /// Key of the object, which is its path.
        key: String,
        /// Number of attempts.
        attempts: AttemptCount,
        /// Error of the server or of the connection.
        source: FailedFetch,
    },
    /// A file of an archive failed.
    #[error("cannot read {key} from the archive")]
    Archive {
        /// Key of the object, which is its path.
        key: String,
        /// Error that the file system returned.
        source: std::io::Error,
    },
}

impl OriginError {
    /// Adds the key that was requested.
    pub(crate) fn fetch(key: &Key, failed: FailedFetch) -> Self {
        Self::Fetch {
            key: key.to_string(),
            attempts: AttemptCount::default(),
            source: failed,
        }
    }

    pub(crate) fn too_large(key: &Key, max: u64) -> Self {
        Self::Refused(format!("{key} has more than {max} bytes"))
    }
}

impl RequestError for OriginError {
    fn exchange_mut(&mut self) -> Option<(&mut FetchError, &mut AttemptCount)> {
        match self {
            Self::Fetch { attempts, source, .. } => Some((&mut source.error, attempts)),
            _ => None,
        }
    }
}

impl From<StoreError> for OriginError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(key) => Self::NotFound(key),
            error => Self::Store(error.into()),
        }
    }
}

/// A store as an origin, for copies without a server.
#[derive(Debug)]
pub struct StoreOrigin(pub Arc<dyn Store>);

#[async_trait]
impl Origin for StoreOrigin {
    async fn object(&self, key: &Key, size: u64) -> Result<OriginBody, OriginError> {
        let Object { info, body } = self.0.open(key, None).await?;
        if info.size > size {
            return Err(OriginError::too_large(key, size));
        }
        Ok(body.map_err(OriginError::from).boxed())
    }

    /// Returns the names from `catalogs.json` that have a pointer. If that is lost, the store is listed.
    async fn names(&self) -> Result<BTreeSet<CatalogName>, OriginError> {
        catalog_names(&*self.0).await.map_err(OriginError::Store)
    }
}
