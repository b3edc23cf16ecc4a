//! Mirrors to copy from, and catalogs of them that are read without copying.

use std::{borrow::Cow, collections::BTreeSet, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use model::text::without_folders;
use model::{
    CatalogName, Catalogs, Current, Document, Key, Kind, ObjectDigest, Snapshot, StoredDocument,
    decode_zstd,
};
use publish::catalog_names;
use render::{RenderLimits, Rendering};
use store::{DOCUMENT_MAX, Object, Store, StoreExt, collect};
use upkeep::ObjectProblem;

use crate::{OriginError, SyncError};

/// A mirror to copy from: a server, a store or an archive.
#[async_trait]
pub trait Origin: Debug + Send + Sync + 'static {
    /// Returns a mutable document of at most [`DOCUMENT_MAX`] bytes. A server sends nothing if they
    /// are still the `known` ones.
    ///
    /// # Errors
    /// [`OriginError`]; [`OriginError::NotFound`] if there is no such document.
    async fn document(&self, key: &Key, _known: Option<&Bytes>) -> Result<Bytes, OriginError> {
        collect(self.object(key, DOCUMENT_MAX).await?, DOCUMENT_MAX).await
    }

    /// Reads an immutable object of `size` bytes. A larger body is an error; the caller must notice
    /// a shorter one.
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

    /// Returns the names from `catalogs.json` that have a pointer. If that is lost, the store is
    /// listed.
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
            Self::Published(catalog) => Box::new(
                catalog
                    .snapshot
                    .packages
                    .iter()
                    .map(|shard| shard.name.as_str()),
            ),
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

    /// Returns the name of the catalog, or its source without the folders in which it lies.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Published(catalog) => catalog.name.as_str().into(),
            Self::Rendered { source, .. } => without_folders(source),
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

/// Published state of one catalog of a mirror, whose packages are read one by one. Every object is
/// verified by its hash.
#[derive(Debug)]
pub struct OriginCatalog {
    origin: Arc<dyn Origin>,
    /// Name of the catalog in the mirror.
    pub name: CatalogName,
    /// Pointer of the catalog.
    pub current: Current,
    /// Snapshot that it names.
    pub snapshot: Snapshot,
}

impl OriginCatalog {
    /// Reads the pointer and the snapshot of a catalog.
    ///
    /// # Errors
    /// [`SyncError::UnknownCatalog`], and documents that cannot be read, do not belong together or
    /// exceed the default limits.
    pub async fn open(origin: Arc<dyn Origin>, name: &CatalogName) -> Result<Self, SyncError> {
        let bytes = fetch_pointer(&*origin, name, None).await?;
        let current = parse_pointer(name, &bytes)?;
        let bytes = fetch_snapshot(&*origin, &current).await?;
        let snapshot = parse_snapshot(name, &current, &bytes)?;
        Ok(Self {
            origin,
            name: name.clone(),
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

/// Fetches the pointer of a catalog, unless it has the `known` bytes.
pub(crate) async fn fetch_pointer(
    origin: &dyn Origin,
    name: &CatalogName,
    known: Option<&Bytes>,
) -> Result<Bytes, SyncError> {
    match origin.document(&Key::Current(name.clone()), known).await {
        Err(OriginError::NotFound(_)) => Err(SyncError::UnknownCatalog(name.clone())),
        read => Ok(read?),
    }
}

/// Parses the pointer of a catalog, which has at most as many bytes as a poll reads by default.
pub(crate) fn parse_pointer(name: &CatalogName, bytes: &[u8]) -> Result<Current, SyncError> {
    let current = Current::from_bytes(bytes).map_err(|source| SyncError::Document {
        key: Key::Current(name.clone()).to_string(),
        source,
    })?;
    // A pointer may name any object, and its bytes would hash to its key.
    if current.snapshot.kind != Kind::Snapshot {
        return Err(SyncError::Disagrees(name.clone()));
    }
    // A small object may unpack to any size, and all of it is unpacked to be checked. The Snapshot
    // repeats this size, and every object of it is unpacked no further than the Snapshot says.
    let limit = RenderLimits::default().content_bytes;
    if current.size > limit {
        return Err(SyncError::TooLarge {
            name: name.clone(),
            size: current.size,
            limit,
        });
    }
    Ok(current)
}

/// Fetches the Snapshot that a pointer names. An untrusted one may state any size.
pub(crate) async fn fetch_snapshot(
    origin: &dyn Origin,
    current: &Current,
) -> Result<Bytes, OriginError> {
    let max = current.snapshot.digest.size.min(DOCUMENT_MAX);
    collect(origin.object(&current.snapshot.key(), max).await?, max).await
}

/// Parses the Snapshot that a pointer names, if it is that one and belongs to the pointer.
pub(crate) fn parse_snapshot(
    name: &CatalogName,
    current: &Current,
    bytes: &[u8],
) -> Result<Snapshot, SyncError> {
    let disagrees = || SyncError::Disagrees(name.clone());
    if ObjectDigest::of(bytes) != current.snapshot.digest {
        return Err(disagrees());
    }
    let snapshot = Snapshot::from_stored(bytes).map_err(|source| SyncError::Document {
        key: current.snapshot.key().to_string(),
        source,
    })?;
    let belong = current.describes(&snapshot) && snapshot.is_consistent();
    belong.then_some(snapshot).ok_or_else(disagrees)
}
