use std::sync::Arc;

use bytes::Bytes;
use futures_channel::oneshot;
use futures_util::{StreamExt, TryStreamExt, stream};
use model::text::Chain;
use model::{CatalogName, Catalogs, Document, Key};
use store::{Object, ReadStore, StoreExt};

use crate::cache::Caches;
use crate::error::{Corruption, ReaderError};
use crate::objects::check_size;
use crate::pointer::Pointers;
use crate::state::{PublishedState, ReaderSettings};

/// Maximum size of a document that is read into memory, in bytes. The Snapshot of 100,000 packages
/// has half of it.
const DOCUMENT_MAX: u64 = 64 << 20;

/// Maximum number of pointers that are read at a time: as many as a store far away answers well.
const CONCURRENT_READS: usize = 16;

/// Maximum number of bytes that are hashed, coded or parsed on the request's own thread. That takes
/// under a millisecond, and handing it to another thread takes two switches. It also keeps small
/// requests in one order, which the simulation needs.
const INLINE_MAX: u64 = 64 << 10;

/// Catalogs of a store, as all fronts of one program read them: they share verified pointers,
/// caches and limits.
#[derive(Debug, Clone)]
pub struct PublishedCatalogs(pub(crate) Arc<SharedReader>);

/// State that all copies of [`PublishedCatalogs`] share.
#[derive(Debug)]
pub(crate) struct SharedReader {
    pub(crate) store: Arc<dyn ReadStore>,
    pub(crate) settings: ReaderSettings,
    pub(crate) pointers: Pointers,
    pub(crate) caches: Caches,
}

impl PublishedCatalogs {
    /// Creates the reader of a store. Reads nothing.
    pub fn new(store: Arc<dyn ReadStore>, settings: ReaderSettings) -> Self {
        Self(Arc::new(SharedReader {
            caches: Caches::new(settings.cache_bytes),
            pointers: Pointers::default(),
            store,
            settings,
        }))
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn ReadStore {
        &*self.0.store
    }

    /// Returns the maximum memory for the caches of the reader and its fronts together, in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.0.settings.cache_bytes
    }

    /// Returns the published states of all catalogs that are served, in byte order of their names.
    ///
    /// # Errors
    /// [`ReaderError::Store`], and [`ReaderError::Corrupt`] for an unreadable `catalogs.json`.
    pub async fn all(&self) -> Result<Vec<PublishedState>, ReaderError> {
        // The states tell which catalogs are unavailable: `names` would ask for each pointer once
        // more.
        let names = self.stored_names().await?.unwrap_or_default();
        let states = stream::iter(names.catalogs).map(|name| self.listed(name));
        let states = states.buffered(CONCURRENT_READS);
        states
            .try_filter_map(async |state| Ok(state))
            .try_collect()
            .await
    }

    /// Returns `catalogs.json` without the names of catalogs that are unavailable. `None` if the
    /// store does not have it.
    ///
    /// # Errors
    /// As [`Self::all`].
    pub async fn names(&self) -> Result<Option<Catalogs>, ReaderError> {
        let Some(mut names) = self.stored_names().await? else {
            return Ok(None);
        };
        let shown = stream::iter(names.catalogs).map(|name| async move {
            let is_hidden = self.hides(&name).await?;
            Ok::<_, ReaderError>((!is_hidden).then_some(name))
        });
        let shown = shown.buffered(CONCURRENT_READS);
        names.catalogs = shown
            .try_filter_map(async |name| Ok(name))
            .try_collect()
            .await?;
        Ok(Some(names))
    }

    async fn stored_names(&self) -> Result<Option<Catalogs>, ReaderError> {
        let bytes = self.document(&Key::Catalogs).await?;
        let names = bytes.map(|bytes| Catalogs::from_bytes(&bytes)).transpose();
        names.map_err(ReaderError::document(&Key::Catalogs))
    }

    /// Returns nothing for a catalog that is not served, was never published, or has an unreadable
    /// pointer: one broken catalog must not hide the others.
    async fn listed(&self, name: CatalogName) -> Result<Option<PublishedState>, ReaderError> {
        match self.find(name.as_str()).await {
            Ok(state) => Ok(Some(state)),
            Err(ReaderError::UnknownCatalog(_)) => Ok(None),
            Err(error @ (ReaderError::Corrupt { .. } | ReaderError::Untrusted { .. })) => {
                tracing::error!(
                    error = %Chain(&error),
                    catalog = name.as_str(),
                    "left a catalog out of the list"
                );
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads a mutable document. Returns `None` if the store does not have it.
    ///
    /// # Errors
    /// [`ReaderError::Store`], and [`ReaderError::Corrupt`] for one that is too large or ends
    /// early.
    pub async fn document(&self, key: &Key) -> Result<Option<Bytes>, ReaderError> {
        match self.0.store.open(key, None).await {
            Err(error) if error.is_not_found() => Ok(None),
            opened => Ok(Some(self.collect(key, opened?).await?)),
        }
    }

    /// Runs work on `bytes` bytes: hashing, compressing, parsing. Long work goes to another thread
    /// if the program has one, so that it does not keep other requests of this thread waiting.
    pub async fn run<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if bytes <= INLINE_MAX {
            return work();
        }
        let (done, result) = oneshot::channel();
        // The receiver may have gone with its client.
        (self.0.settings.offload)(Box::new(move || drop(done.send(work()))));
        result.await.expect("the work ends and does not panic")
    }

    /// Reads an opened object into memory and checks that it is complete.
    pub(crate) async fn collect(&self, key: &Key, object: Object) -> Result<Bytes, ReaderError> {
        let expected = object.info.size;
        let limit = DOCUMENT_MAX.max(self.0.caches.body_max);
        if expected > limit {
            return Err(ReaderError::corrupt(key, Corruption::TooLarge(limit)));
        }
        let bytes = store::collect(object.body, expected).await?;
        check_size(key, expected, bytes.len() as u64)?;
        Ok(bytes)
    }
}
