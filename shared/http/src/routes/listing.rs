use bytes::Bytes;
use model::{CachePolicy, Kind, ShardRef};
use reader::PublishedState;
use serde::Serialize;

use super::RouteCall;
use crate::{error::ApiError, respond::Representation};

/// The catalogs that are served.
#[derive(Debug, Serialize)]
struct CatalogList {
    /// In byte order of their names.
    catalogs: Vec<CatalogEntry>,
}

/// One catalog and its published state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CatalogEntry {
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
#[derive(Debug, Serialize)]
struct CatalogOrigin {
    /// The source as it is configured.
    #[serde(rename = "ref")]
    reference: String,
    /// The source's own version: of an image, its digest.
    digest: String,
}

/// Size of the whole catalog in each content coding, in bytes.
#[derive(Debug, Serialize)]
struct AllSizes {
    identity: u64,
    gzip: u64,
    zstd: u64,
}

/// The packages of one published state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PackageList {
    content_hash: String,
    /// In byte order of their names.
    packages: Vec<PackageEntry>,
}

/// One package.
#[derive(Debug, Serialize)]
struct PackageEntry {
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
#[derive(Debug, Serialize)]
struct StoredPackage {
    /// Its path below the mirror's root.
    key: String,
    /// Its size, in bytes.
    size: u64,
}

/// Reads pointers only, so the cost does not depend on the size of the catalogs.
pub(super) async fn catalogs(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let states = call.app.catalogs.all().await?;
    let catalogs = states.iter().map(CatalogEntry::new).collect();
    Ok(Representation::document(
        json(&CatalogList { catalogs }),
        CachePolicy::Pointer,
    ))
}

pub(super) async fn packages(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let snapshot = state.snapshot().await?;
    let list = PackageList {
        content_hash: state.current().content_hash.to_string(),
        packages: snapshot.packages.iter().map(PackageEntry::new).collect(),
    };
    Ok(Representation {
        modified: Some(call.app.head(&state).modified.clone()),
        ..Representation::document(json(&list), CachePolicy::Pointer)
    })
}

impl CatalogEntry {
    fn new(state: &PublishedState) -> Self {
        let current = state.current();
        Self {
            name: state.name().to_string(),
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
