//! Reading a catalog of a mirror without copying it.

use std::sync::Arc;

use model::{CatalogName, Current, Kind, ObjectDigest, Snapshot, decode_zstd};
use render::Rendering;
use store::collect;
use upkeep::ObjectProblem;

use crate::{
    Origin, SyncError,
    plan::{fetch_pointer, fetch_snapshot, parse_pointer, parse_snapshot},
};

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
