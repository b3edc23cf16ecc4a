//! Mirrors to copy from, and catalogs of them that are read without copying.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use fetch::{AttemptCount, FailedFetch, FetchError, RequestError};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use model::{CatalogName, Catalogs, Current, Document, DocumentError, Key, Kind, ObjectDigest, Snapshot, decode_zstd};
use publish::catalog_names;
use render::Rendering;
use store::{DOCUMENT_MAX, Object, ReadError, Store, StoreError, StoreExt, collect};
use upkeep::ObjectProblem;

use crate::SyncError;
use crate::plan::{fetch_pointer, fetch_snapshot, parse_pointer, parse_snapshot};

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

/// Catalog that is read package by package and not stored.
pub enum ReadCatalog {
    /// Published state of a mirror.
    Published(Box<OriginCatalog>),
    /// A source that was read.
    Rendered {
        /// Content of the source.
        rendering: Rendering,
        /// Source as it is written.
        source: String,
    },
}

impl ReadCatalog {
    /// Returns the names of all packages, in byte order.
    pub fn packages(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Published(catalog) => Box::new(catalog.snapshot.packages.iter().map(|shard| shard.name.as_str())),
            Self::Rendered { rendering, .. } => Box::new(rendering.packages()),
        }
    }

    /// Reads the lines of a package; `None` if the catalog does not have it.
    ///
    /// # Errors
    /// [`SyncError`], where a source can only fail to be decompressed.
    pub async fn lines(&self, name: &str) -> Result<Option<Vec<u8>>, SyncError> {
        match self {
            Self::Published(catalog) => catalog.lines(name).await,
            Self::Rendered { rendering, .. } => {
                let Some(shard) = rendering.shards().iter().find(|shard| shard.name == name) else {
                    return Ok(None);
                };
                let mut all = Vec::new();
                rendering.read_lines(shard, |lines| all.extend_from_slice(lines))?;
                Ok(Some(all))
            }
        }
    }

    /// Returns the reference of the image or of the other source that the content comes from.
    pub fn source(&self) -> &str {
        match self {
            Self::Published(catalog) => &catalog.current.source.reference,
            Self::Rendered { source, .. } => source,
        }
    }
}

/// Published state of one catalog of a mirror, whose packages are read one by one. Every object is verified by its hash.
#[derive(Debug)]
pub struct OriginCatalog {
    origin: Arc<dyn Origin>,
    /// Pointer of the catalog.
    pub current: Current,
    /// Snapshot that it names.
    pub snapshot: Snapshot,
}

impl OriginCatalog {
    /// Reads the pointer and the snapshot of a catalog.
    ///
    /// # Errors
    /// [`SyncError::UnknownCatalog`], and documents that cannot be read, do not belong together or exceed the default limits.
    pub async fn open(origin: Arc<dyn Origin>, name: &CatalogName) -> Result<Self, SyncError> {
        let bytes = fetch_pointer(&*origin, name, None).await?;
        let current = parse_pointer(name, &bytes)?;
        let bytes = fetch_snapshot(&*origin, &current).await?;
        let snapshot = parse_snapshot(name, &current, &bytes)?;
        Ok(Self {
            origin,
            current,
            snapshot,
        })
    }

    /// Reads the lines of a package; `None` if the catalog does not have it.
    ///
    /// # Errors
    /// An object that cannot be read, or is not the one that the snapshot names.
    pub async fn lines(&self, package: &str) -> Result<Option<Vec<u8>>, SyncError> {
        let Some(shard) = self.snapshot.package(package) else {
            return Ok(None);
        };
        let key = shard.stored.with_kind(Kind::Package).key();
        let size = shard.stored.size;
        let bytes = collect(self.origin.object(&key, size).await?, size).await?;
        let found = ObjectDigest::of(&bytes);
        let damaged = SyncError::damaged(&key);
        if found != shard.stored {
            return Err(damaged(ObjectProblem::Hash { found }));
        }
        let lines = decode_zstd(&bytes, shard.lines.size);
        lines.map(Some).map_err(|_| damaged(ObjectProblem::Content))
    }
}
