use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use model::{CachePolicy, CatalogName, Catalogs, Document, Key, Kind, ShardRef};
use serde::Serialize;
use store::Get;
use utoipa::ToSchema;

use super::{BodyType, DOCUMENT, Route, RouteCall};
use crate::{
    app::App,
    error::{ApiError, Corruption},
    pointer::ServedCatalog,
    respond::Representation,
};

pub(super) const CATALOGS: Route = Route {
    path: "/catalogs",
    handler: |call| Box::pin(catalogs(call)),
    id: "listCatalogs",
    summary: "The catalogs that are served, with their published states",
    body: BodyType::Json("CatalogList"),
    errors: &[503],
    ..DOCUMENT
};

pub(super) const PACKAGES: Route = Route {
    path: "/catalogs/{catalog}/packages",
    handler: |call| Box::pin(packages(call)),
    id: "listPackages",
    summary: "The packages with their hashes, sizes and objects",
    body: BodyType::Json("PackageList"),
    dated: true,
    ..DOCUMENT
};

/// Maximum number of pointers that are read at a time: as many as a store far away answers well.
const CONCURRENT_READS: usize = 16;

/// The catalogs that are served.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CatalogList {
    /// In byte order of their names.
    catalogs: Vec<CatalogEntry>,
}

/// One catalog and its published state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CatalogEntry {
    name: String,
    /// The sha256 of the uncompressed `all.json`.
    content_hash: String,
    /// Grows by one with every publication.
    serial: u64,
    /// RFC 3339, UTC.
    published_at: String,
    source: CatalogOrigin,
    /// Number of packages.
    packages: u64,
    /// Number of metas.
    metas: u64,
    sizes: AllSizes,
}

/// The source that the catalog was read from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CatalogOrigin {
    /// The source as it is configured.
    #[serde(rename = "ref")]
    reference: String,
    /// The source's own version: of an image, its digest.
    digest: String,
}

/// Size of the whole catalog in each content coding, in bytes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AllSizes {
    identity: u64,
    gzip: u64,
    zstd: u64,
}

/// The packages of one published state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PackageList {
    content_hash: String,
    /// In byte order of their names.
    packages: Vec<PackageEntry>,
}

/// One package.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PackageEntry {
    name: String,
    /// The sha256 of its uncompressed lines.
    sha256: String,
    /// Size of its lines, in bytes.
    size: u64,
    /// Number of metas.
    metas: u64,
    object: StoredPackage,
}

/// The immutable object that holds the lines of a package.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredPackage {
    /// Its path below the mirror's root.
    key: String,
    /// Its size, in bytes.
    size: u64,
}

/// Reads pointers only, so the cost does not depend on the size of the catalogs.
async fn catalogs(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let catalogs = call.app.served_catalogs().await?;
    let catalogs = catalogs.iter().map(|served| CatalogEntry::new(served)).collect();
    Ok(Representation::document(
        json(&CatalogList { catalogs }),
        CachePolicy::Pointer,
    ))
}

async fn packages(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let served = call.app.served(&call.catalog()?).await?;
    let snapshot = call.app.snapshot(&served).await?;
    let list = PackageList {
        content_hash: served.current.content_hash.to_string(),
        packages: snapshot.packages.iter().map(PackageEntry::new).collect(),
    };
    Ok(Representation {
        modified: Some(served.modified.clone()),
        ..Representation::document(json(&list), CachePolicy::Pointer)
    })
}

impl App {
    /// Returns the published states of all catalogs that are served, in byte order of their names.
    pub(crate) async fn served_catalogs(self: &Arc<Self>) -> Result<Vec<Arc<ServedCatalog>>, ApiError> {
        let entries = stream::iter(self.names().await?.catalogs).map(|name| self.listed(name));
        let entries: Vec<Option<Arc<ServedCatalog>>> = entries.buffered(CONCURRENT_READS).try_collect().await?;
        Ok(entries.into_iter().flatten().collect())
    }

    async fn names(&self) -> Result<Catalogs, ApiError> {
        let key = Key::Catalogs;
        let bytes = match self.get(&key, Get::default()).await {
            Ok(object) => self.collect(&key, object).await?,
            Err(error) if error.is_not_found() => return Ok(Catalogs::default()),
            Err(error) => return Err(ApiError::Store(error)),
        };
        Catalogs::from_bytes(&bytes).map_err(|source| ApiError::corrupt(&key, Corruption::Document(source)))
    }

    /// Returns nothing for a catalog that is not served, was never published, or has an unreadable pointer: one broken
    /// catalog must not hide the others.
    async fn listed(self: &Arc<Self>, name: CatalogName) -> Result<Option<Arc<ServedCatalog>>, ApiError> {
        match self.served(name.as_str()).await {
            Ok(served) => Ok(Some(served)),
            Err(ApiError::UnknownCatalog(_)) => Ok(None),
            Err(error @ (ApiError::Corrupt { .. } | ApiError::Untrusted { .. })) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, catalog = name.as_str(), "left a catalog out of the list");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl CatalogEntry {
    fn new(served: &ServedCatalog) -> Self {
        let current = &served.current;
        Self {
            name: served.name.to_string(),
            content_hash: current.content_hash.to_string(),
            serial: current.serial,
            published_at: humantime::format_rfc3339_seconds(current.published_at).to_string(),
            source: CatalogOrigin {
                reference: current.source.reference.clone(),
                digest: current.source.revision.clone(),
            },
            packages: current.packages,
            metas: current.metas,
            sizes: AllSizes {
                identity: current.size,
                gzip: current.all.gzip.digest.size,
                zstd: current.all.zstd.digest.size,
            },
        }
    }
}

impl PackageEntry {
    fn new(shard: &ShardRef) -> Self {
        let object = shard.stored.with_kind(Kind::Package);
        Self {
            name: shard.name.clone(),
            sha256: shard.lines.sha256.to_string(),
            size: shard.lines.size,
            metas: shard.metas,
            object: StoredPackage {
                key: object.key().to_string(),
                size: object.digest.size,
            },
        }
    }
}

pub(super) fn json(list: &impl Serialize) -> Bytes {
    let mut bytes = serde_json::to_vec(list).expect("lists hold only plain fields");
    bytes.push(b'\n');
    bytes.into()
}
