//! Mirrors to copy from, and catalogs of them that are read without copying.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use model::text::without_folders;
use model::{CatalogName, Catalogs, Current, Key, Kind, Snapshot};
use publish::catalog_names;
use reader::{PublishedCatalogs, PublishedState, ReaderError, ReaderSettings};
use render::{RenderLimits, Rendering};
use store::{DOCUMENT_MAX, ReadError, ReadStore, Store, StoreError, StoreExt};

use crate::SyncError;

/// A mirror to copy from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A store of this program, which can be listed.
    Store(Arc<dyn Store>),
    /// A mirror over HTTP or an archive, which can only be read.
    Mirror(Arc<dyn ReadStore>),
}

impl Origin {
    /// Returns the objects of the mirror.
    pub fn objects(&self) -> &dyn ReadStore {
        match self {
            Self::Store(store) => &**store,
            Self::Mirror(mirror) => &**mirror,
        }
    }

    /// Returns the names of all catalogs, from `catalogs.json`. Of a store only those that have a
    /// pointer; it is listed if the document is lost.
    pub(crate) async fn names(&self) -> Result<BTreeSet<CatalogName>, ReadError> {
        match self {
            Self::Store(store) => catalog_names(&**store).await,
            Self::Mirror(mirror) => {
                let names = mirror.read_document::<Catalogs>(&Key::Catalogs).await?;
                let (names, _) = names.ok_or_else(|| StoreError::not_found(&Key::Catalogs))?;
                Ok(names.catalogs)
            }
        }
    }
}

/// Catalog that is read package by package and not stored.
pub enum ReadCatalog {
    /// Published state of a mirror.
    Published {
        /// State, whose objects are verified by their hashes.
        state: PublishedState,
        /// Snapshot of the state.
        snapshot: Arc<Snapshot>,
    },
    /// A source that was read.
    Rendered {
        /// Content of the source.
        rendering: Rendering,
        /// Source as it is written.
        source: String,
    },
}

impl ReadCatalog {
    /// Reads the pointer and the Snapshot of a catalog of a mirror.
    ///
    /// # Errors
    /// [`SyncError::UnknownCatalog`], and documents that cannot be read, do not belong together or
    /// exceed the default limits.
    pub async fn open(mirror: Arc<dyn ReadStore>, name: &CatalogName) -> Result<Self, SyncError> {
        let catalogs = PublishedCatalogs::new(mirror, ReaderSettings::default());
        let state = catalogs.state(name).await.map_err(|error| match error {
            ReaderError::UnknownCatalog(_) => SyncError::UnknownCatalog(name.clone()),
            error => SyncError::Read(error),
        })?;
        check_pointer(name, state.current())?;
        let snapshot = state.snapshot().await?;
        check_snapshot(name, state.current(), &snapshot)?;
        Ok(Self::Published { state, snapshot })
    }

    /// Returns the names of all packages, in byte order.
    pub fn packages(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Published { snapshot, .. } => {
                Box::new(snapshot.packages.iter().map(|shard| shard.name.as_str()))
            }
            Self::Rendered { rendering, .. } => Box::new(rendering.packages()),
        }
    }

    /// Reads the lines of a package; `None` if the catalog does not have it.
    ///
    /// # Errors
    /// [`SyncError`], where a source can only fail to be decompressed.
    pub async fn lines(&self, name: &str) -> Result<Option<Vec<u8>>, SyncError> {
        match self {
            Self::Published { state, snapshot } => match snapshot.package(name) {
                Some(shard) => Ok(Some(state.shard_lines(shard).await?)),
                None => Ok(None),
            },
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
            Self::Published { state, .. } => state.name().as_str().into(),
            Self::Rendered { source, .. } => without_folders(source),
        }
    }

    /// Returns the reference of the image or of the other source that the content comes from.
    pub fn source(&self) -> &str {
        match self {
            Self::Published { state, .. } => &state.current().source.reference,
            Self::Rendered { source, .. } => source,
        }
    }
}

/// Checks what a pointer of another mirror names, and the size that it states. A pointer may name
/// any object, and its bytes would hash to its key.
pub(crate) fn check_pointer(name: &CatalogName, current: &Current) -> Result<(), SyncError> {
    let snapshot = current.snapshot;
    if snapshot.kind != Kind::Snapshot {
        return Err(SyncError::Disagrees(name.clone()));
    }
    if snapshot.digest.size > DOCUMENT_MAX {
        return Err(SyncError::Origin(ReadError::TooLarge {
            key: snapshot.key().to_string(),
            size: snapshot.digest.size,
            max: DOCUMENT_MAX,
        }));
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
    Ok(())
}

/// Checks that a Snapshot of another mirror belongs to its pointer, and does not contradict itself.
pub(crate) fn check_snapshot(
    name: &CatalogName,
    current: &Current,
    snapshot: &Snapshot,
) -> Result<(), SyncError> {
    if current.describes(snapshot) && snapshot.is_consistent() {
        return Ok(());
    }
    Err(SyncError::Disagrees(name.clone()))
}
