use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use model::{CatalogName, Current, Document, Encoding, Key, Kind, Sha256};
use parking_lot::{Mutex, RwLock};
use store::{Fetched, Get, Object, Version};

use crate::catalogs::PublishedCatalogs;
use crate::error::{Corruption, PointerRefused, ReaderError};
use crate::state::PublishedState;

/// Maximum size of `current.json`, in bytes. Seventeen publications, each with several signers,
/// take a tenth of it, and all pointers stay in memory.
const POINTER_MAX: u64 = 256 << 10;

/// A verified `current.json`.
#[derive(Debug)]
pub(crate) struct KnownPointer {
    pub(crate) name: CatalogName,
    pub(crate) current: Current,
    /// Bytes as they are stored and signed, with their hash.
    pub(crate) document: Bytes,
    pub(crate) hash: Sha256,
    /// Version that was read last: this one, or a later one that was refused, because no trusted
    /// key signed it or because its serial is lower. The store is asked for any other one.
    seen: Mutex<Version>,
    /// Time of the last confirmation by the store, in milliseconds of the clock. Without a lock,
    /// because each request reads it.
    checked: AtomicU64,
}

/// All pointers that were read, by catalog. They are small, and a store has as many as it has
/// catalogs. They are kept outside the bounded caches, because a verified pointer that was evicted
/// could be replaced by an older signed one.
pub(crate) type Pointers = RwLock<HashMap<Box<str>, Arc<KnownPointer>>>;

impl PublishedCatalogs {
    /// Returns the published state of a catalog that is served.
    ///
    /// # Errors
    /// [`ReaderError::CatalogName`] and [`ReaderError::UnknownCatalog`] for a name that is not
    /// served, else what keeps the pointer from being read.
    pub async fn find(&self, name: &str) -> Result<PublishedState, ReaderError> {
        let pointer = self.pointer(name).await?;
        if !pointer.current.availability.is_available() {
            return Err(ReaderError::UnknownCatalog(name.to_owned()));
        }
        let catalogs = self.clone();
        Ok(PublishedState { catalogs, pointer })
    }

    /// Returns the published state of a catalog, also of one that is unavailable.
    ///
    /// # Errors
    /// [`ReaderError::UnknownCatalog`] for one that was never published, else what keeps the
    /// pointer from being read.
    pub async fn state(&self, name: &CatalogName) -> Result<PublishedState, ReaderError> {
        let pointer = self.pointer(name.as_str()).await?;
        let catalogs = self.clone();
        Ok(PublishedState { catalogs, pointer })
    }

    /// Returns true for a published catalog that is unavailable: no route answers for it, and no
    /// list has it. The status of one that was never published, or whose pointer is refused, says
    /// why.
    ///
    /// # Errors
    /// [`ReaderError::Store`].
    pub async fn hides(&self, name: &CatalogName) -> Result<bool, ReaderError> {
        match self.pointer(name.as_str()).await {
            Ok(pointer) => Ok(!pointer.current.availability.is_available()),
            Err(error @ ReaderError::Store(_)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    async fn pointer(&self, name: &str) -> Result<Arc<KnownPointer>, ReaderError> {
        let known = self.0.pointers.read().get(name).cloned();
        match known {
            Some(known) if self.is_fresh(&known) => Ok(known),
            known => self.revalidated(name, known).await,
        }
    }

    fn is_fresh(&self, known: &KnownPointer) -> bool {
        let age = self
            .now_ms()
            .saturating_sub(known.checked.load(Ordering::Relaxed));
        Duration::from_millis(age) < self.0.settings.freshness
    }

    /// Returns the time of the reader's clock.
    pub fn now(&self) -> Duration {
        (self.0.settings.clock)()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX)
    }

    async fn revalidated(
        &self,
        name: &str,
        known: Option<Arc<KnownPointer>>,
    ) -> Result<Arc<KnownPointer>, ReaderError> {
        let catalog: CatalogName = name.parse().map_err(ReaderError::CatalogName)?;
        let key = Key::Current(catalog.clone());
        let get = Get {
            range: None,
            // A refused version counts as seen: it would else be read, verified and logged at each
            // request.
            unless: known.as_ref().map(|known| known.seen.lock().clone()),
        };
        match (self.0.store.get(&key, get).await, known) {
            (Ok(Fetched::NotModified), Some(known)) => {
                known.checked.store(self.now_ms(), Ordering::Relaxed);
                Ok(known)
            }
            (Ok(Fetched::NotModified), None) => {
                Err(ReaderError::corrupt(&key, Corruption::Mismatch))
            }
            (Ok(Fetched::Object(object)), known) => {
                Box::pin(self.load_pointer(catalog, object, known)).await
            }
            (Err(error), _) if error.is_not_found() => {
                // Under trust the highest serial that was served is remembered, so that to delete a
                // pointer and to write an older one is no way around the check.
                if self.0.settings.trust.is_none() {
                    self.0.pointers.write().remove(name);
                }
                Err(ReaderError::UnknownCatalog(name.to_owned()))
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    async fn load_pointer(
        &self,
        name: CatalogName,
        object: Object,
        known: Option<Arc<KnownPointer>>,
    ) -> Result<Arc<KnownPointer>, ReaderError> {
        let key = Key::Current(name.clone());
        let version = object.info.version.clone();
        if object.info.size > POINTER_MAX {
            return Err(ReaderError::corrupt(
                &key,
                Corruption::TooLarge(POINTER_MAX),
            ));
        }
        let document = self.collect(&key, object).await?;
        if let Some(trust) = &self.0.settings.trust
            && let Err(error) = trust.verify(&name, &document)
        {
            return self.keep_last(known, version, &name, error.into());
        }
        let current = Current::from_bytes(&document).map_err(ReaderError::document(&key))?;
        // Without trusted keys a lower serial is accepted: the catalog was removed and published
        // again.
        if let Some(known) = known.filter(|known| known.current.serial > current.serial)
            && self.0.settings.trust.is_some()
        {
            let older = PointerRefused::Older {
                found: current.serial,
                served: known.current.serial,
            };
            return self.keep_last(Some(known), version, &name, older);
        }
        let kinds = [
            current.snapshot.kind,
            current.all.zstd.kind,
            current.all.gzip.kind,
        ];
        if kinds
            != [
                Kind::Snapshot,
                Kind::All(Encoding::Zstd),
                Kind::All(Encoding::Gzip),
            ]
        {
            return Err(ReaderError::corrupt(&key, Corruption::Mismatch));
        }
        let pointer = Arc::new(KnownPointer {
            name,
            current,
            hash: Sha256::of(&document),
            document,
            seen: Mutex::new(version),
            checked: AtomicU64::new(self.now_ms()),
        });
        let mut pointers = self.0.pointers.write();
        // Two requests may load two publications at once, and the one with the older may end last.
        if self.0.settings.trust.is_some()
            && let Some(later) = pointers.get(pointer.name.as_str())
            && later.current.serial > pointer.current.serial
        {
            return Ok(Arc::clone(later));
        }
        pointers.insert(pointer.name.as_str().into(), Arc::clone(&pointer));
        Ok(pointer)
    }

    /// Serves the last verified state, if there is one. Logs each refused version once.
    fn keep_last(
        &self,
        known: Option<Arc<KnownPointer>>,
        version: Version,
        catalog: &CatalogName,
        source: PointerRefused,
    ) -> Result<Arc<KnownPointer>, ReaderError> {
        let Some(known) = known else {
            let catalog = catalog.to_string();
            return Err(ReaderError::Untrusted { catalog, source });
        };
        let serial = known.current.serial;
        tracing::error!(%catalog, serial, error = %model::text::Chain(&source), "refused a new pointer, serving the last verified one");
        *known.seen.lock() = version;
        known.checked.store(self.now_ms(), Ordering::Relaxed);
        Ok(known)
    }
}
