use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use layout::{CachePolicy, CatalogName, Catalogs, Document, Form, Key, ShardRef};
use serde::Serialize;
use store::Get;
use utoipa::ToSchema;

use crate::{
    answers::document,
    app::App,
    error::{Corruption, Error},
    published::Published,
    respond::Representation,
};

/// How many catalogs are looked at together for the list: as many as a store far away answers well.
const SIDE_BY_SIDE: usize = 16;

/// The catalogs that are served.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CatalogList {
    /// In byte order of their names.
    catalogs: Vec<CatalogEntry>,
}

/// One catalog and what is published of it.
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
    source: Origin,
    /// How many packages there are.
    packages: u64,
    /// How many metas there are.
    metas: u64,
    sizes: Sizes,
}

/// What the catalog was read from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Origin {
    /// As configured.
    #[serde(rename = "ref")]
    reference: String,
    /// The digest that it resolved to.
    digest: String,
}

/// The bytes of the whole catalog by content coding.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Sizes {
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
    /// The sha256 of its uncompressed lines, which names its object.
    sha256: String,
    /// The bytes of its lines.
    size: u64,
    /// The bytes of its object.
    stored: u64,
    metas: u64,
}

impl App {
    /// `GET /catalogs`.
    pub(crate) async fn listing(self: &Arc<Self>) -> Result<Representation, Error> {
        let catalogs = self.served().await?;
        let catalogs = catalogs.iter().map(|published| CatalogEntry::new(published)).collect();
        Ok(document(json(&CatalogList { catalogs }), CachePolicy::Pointer))
    }

    /// `GET /catalogs/{c}/packages`.
    pub(crate) fn packages(&self, published: &Published) -> Representation {
        let list = PackageList {
            content_hash: published.current.content_hash.to_string(),
            packages: published.snapshot.packages.iter().map(PackageEntry::new).collect(),
        };
        let modified = Some(published.modified.clone());
        Representation {
            modified,
            ..document(json(&list), CachePolicy::Pointer)
        }
    }

    /// The published states of all catalogs that are served, in byte order of their names.
    pub(crate) async fn served(self: &Arc<Self>) -> Result<Vec<Arc<Published>>, Error> {
        let entries = stream::iter(self.names().await?.catalogs).map(|name| self.entry(name));
        let entries: Vec<Option<Arc<Published>>> = entries.buffered(SIDE_BY_SIDE).try_collect().await?;
        Ok(entries.into_iter().flatten().collect())
    }

    async fn names(&self) -> Result<Catalogs, Error> {
        let key = Key::Catalogs;
        let bytes = match self.get(&key, Get::default()).await {
            Ok(object) => self.collect(&key, object).await?,
            Err(error) if error.is_not_found() => return Ok(Catalogs::default()),
            Err(error) => return Err(Error::Store(error)),
        };
        Catalogs::from_bytes(&bytes).map_err(|source| Error::corrupt(&key, Corruption::Document(source)))
    }

    /// Nothing of a catalog that is not served, has not been published for the first time, or is broken: the others
    /// are not to be hidden by it.
    async fn entry(self: &Arc<Self>, name: CatalogName) -> Result<Option<Arc<Published>>, Error> {
        match self.published(name.as_str()).await {
            Ok(published) => Ok(Some(published)),
            Err(Error::UnknownCatalog(_)) => Ok(None),
            Err(error @ (Error::Corrupt { .. } | Error::Untrusted { .. })) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, catalog = name.as_str(), "a catalog is left out of the list");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl CatalogEntry {
    fn new(published: &Published) -> Self {
        let (current, snapshot) = (&published.current, &published.snapshot);
        let stored = |form| snapshot.all.form(form).map_or(snapshot.size, |stored| stored.size);
        Self {
            name: published.name.to_string(),
            content_hash: current.content_hash.to_string(),
            serial: current.serial,
            published_at: humantime::format_rfc3339_seconds(current.published_at).to_string(),
            source: Origin {
                reference: current.source.reference.clone(),
                digest: current.source.digest.clone(),
            },
            packages: snapshot.packages.len() as u64,
            metas: snapshot.metas,
            sizes: Sizes {
                identity: snapshot.size,
                gzip: stored(Form::Gzip),
                zstd: stored(Form::Zstd),
            },
        }
    }
}

impl PackageEntry {
    fn new(shard: &ShardRef) -> Self {
        Self {
            name: shard.name.clone(),
            sha256: shard.sha256.to_string(),
            size: shard.size,
            stored: shard.stored.size,
            metas: shard.metas,
        }
    }
}

fn json(list: &impl Serialize) -> Bytes {
    let mut bytes = serde_json::to_vec(list).expect("lists hold only plain fields");
    bytes.push(b'\n');
    bytes.into()
}
