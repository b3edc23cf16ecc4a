//! Published states for other APIs than HTTP.

use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use model::{CatalogName, Kind, ObjectRef, Sha256, ShardRef, Snapshot};
use store::Store;

use crate::{
    app::App,
    coding::decode,
    error::ApiError,
    metrics::HttpMetrics,
    pointer::ServedCatalog,
    router,
    settings::HttpSettings,
    stored::Extent,
    stream::{Chunks, exact},
};

/// Catalogs of a store, as all APIs of one server read them: they share verified pointers, caches and limits.
#[derive(Clone, Debug)]
pub struct PublishedCatalogs {
    app: Arc<App>,
}

/// Published state of a catalog. A later publication does not change it.
#[derive(Clone, Debug)]
pub struct PublishedContent {
    catalogs: PublishedCatalogs,
    served: Arc<ServedCatalog>,
    snapshot: Arc<Snapshot>,
}

impl PublishedCatalogs {
    /// Creates the reader of a store. Reads nothing.
    pub fn new(store: Arc<dyn Store>, settings: HttpSettings, metrics: HttpMetrics) -> Self {
        Self {
            app: Arc::new(App::new(store, settings, metrics)),
        }
    }

    /// Returns the whole HTTP contract. It matches paths itself, as one fallback: `Router::nest` puts it below a prefix, and
    /// other routes can be merged into it.
    pub fn router(&self) -> Router {
        router::router_of(Arc::clone(&self.app))
    }

    /// Returns the names of the catalogs that are served, in byte order.
    ///
    /// # Errors
    /// [`ApiError::Store`] if the store does not answer.
    pub async fn names(&self) -> Result<Vec<CatalogName>, ApiError> {
        let served = self.app.served_catalogs().await?;
        Ok(served.iter().map(|served| served.name.clone()).collect())
    }

    /// Returns the state of a catalog.
    ///
    /// # Errors
    /// [`ApiError::CatalogName`] and [`ApiError::UnknownCatalog`] for a name that is not served, else what keeps the state from
    /// being read.
    pub async fn content(&self, name: &str) -> Result<PublishedContent, ApiError> {
        let name: CatalogName = name.parse().map_err(ApiError::CatalogName)?;
        let served = self.app.served(name.as_str()).await?;
        let snapshot = self.app.snapshot(&served).await?;
        Ok(PublishedContent {
            catalogs: self.clone(),
            served,
            snapshot,
        })
    }
}

impl PublishedContent {
    /// Returns the Snapshot.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the hash of the stored Snapshot, which names the state.
    pub fn identity(&self) -> Sha256 {
        self.served.current.snapshot.digest.sha256
    }

    /// Returns the stored bytes of an object of the Snapshot, verified. They are not kept in memory.
    ///
    /// # Errors
    /// [`ApiError::Corrupt`] and [`ApiError::Store`].
    pub async fn object(&self, object: &ObjectRef) -> Result<Bytes, ApiError> {
        self.catalogs.app.read_object(object).await
    }

    /// Streams the lines of a Shard. They are not kept in memory.
    ///
    /// # Errors
    /// [`ApiError::Corrupt`] and [`ApiError::Store`], also as an item of the stream.
    pub async fn shard(&self, shard: &ShardRef) -> Result<Chunks, ApiError> {
        let object = shard.stored.with_kind(Kind::Package);
        let key = object.key();
        let stored = self.catalogs.app.stream_object(&object, Extent::Prefix).await?;
        Ok(exact(decode(stored, key.clone())?, shard.lines.size, key))
    }

    /// Streams the lines of a Package. An empty name is the global group.
    ///
    /// # Errors
    /// [`ApiError::UnknownPackage`], and the errors of [`Self::shard`].
    pub async fn package(&self, name: &str) -> Result<Chunks, ApiError> {
        let shard = match name {
            "" => self.snapshot.global.as_ref(),
            name => self.snapshot.package(name),
        };
        let shard = shard.ok_or_else(|| ApiError::UnknownPackage(name.to_owned()))?;
        self.shard(shard).await
    }
}
