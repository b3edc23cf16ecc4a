use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use model::{CatalogName, Current, Document, Key, Kind, Sha256, Snapshot, StoredDocument};
use store::{Fetched, Get, Object, Version};
use trust::TrustError;

use crate::{
    app::App,
    error::{ApiError, Corruption, PointerRefused},
    rfc9110::{Coding, Modified, Tag},
    routes::EarlierImages,
};

/// Maximum size of `current.json`, in bytes. Seventeen publications, each with several signers, take a tenth of it, and
/// all pointers stay in memory.
const POINTER_MAX: u64 = 256 << 10;

/// The published state of one catalog, with all that its answers have in common. A request works on one of them from
/// beginning to end, so it never mixes two states.
#[derive(Debug)]
pub(crate) struct ServedCatalog {
    pub(crate) name: CatalogName,
    key: Key,
    pub(crate) current: Current,
    /// Bytes of `current.json` as they are stored and signed.
    pub(crate) document: Bytes,
    pub(crate) document_tag: Tag,
    /// Content hash as a line, and its tag: the most frequent question formats and hashes nothing.
    pub(crate) hash_line: Bytes,
    pub(crate) hash_tag: Tag,
    pub(crate) modified: Modified,
    /// Images of earlier publications, read at the first request for one.
    pub(crate) earlier: EarlierImages,
    all_tags: [Tag; 3],
    version: Version,
    /// A later version that was refused, because no trusted key signed it or because its serial is lower.
    refused: Mutex<Option<Version>>,
    /// Time of the last confirmation by the store, in milliseconds since the start of the process.
    checked: AtomicU64,
}

/// All pointers that were read, by catalog. They are small, and a store has as many as it has catalogs. They are kept
/// outside the bounded caches, because a verified pointer that was evicted could be replaced by an older signed one.
#[derive(Debug, Default)]
pub(crate) struct Pointers(RwLock<HashMap<Box<str>, Arc<ServedCatalog>>>);

impl Pointers {
    fn get(&self, name: &str) -> Option<Arc<ServedCatalog>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name).map(Arc::clone)
    }

    /// True if a pointer of this catalog was read before.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    /// Adds a state unless a later one came first while it was loaded. Returns the state to serve.
    fn insert(&self, served: Arc<ServedCatalog>, keep_later: bool) -> Arc<ServedCatalog> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Two requests may load two publications at once, and the one with the older may end last.
        if keep_later
            && let Some(later) = known.get(served.name.as_str())
            && later.current.serial > served.current.serial
        {
            return Arc::clone(later);
        }
        known.insert(served.name.as_str().into(), Arc::clone(&served));
        served
    }

    fn remove(&self, name: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

impl ServedCatalog {
    fn new(name: CatalogName, document: Bytes, version: Version, current: Current) -> Self {
        let all = &current.all;
        let hash_line = Bytes::from(format!("{}\n", current.content_hash));
        Self {
            hash_tag: Tag::of_stored(Sha256::of(&hash_line)),
            hash_line,
            document_tag: Tag::of_stored(Sha256::of(&document)),
            modified: Modified::new(current.published_at),
            earlier: EarlierImages::default(),
            all_tags: Coding::ALL.map(|coding| match coding {
                Coding::Zstd => Tag::of_stored(all.zstd.digest.sha256),
                Coding::Gzip => Tag::of_stored(all.gzip.digest.sha256),
                // Stored or made on the fly, the bytes are those of the content hash.
                Coding::Identity => Tag::of_stored(current.content_hash),
            }),
            key: Key::Current(name.clone()),
            name,
            current,
            document,
            version,
            refused: Mutex::default(),
            checked: AtomicU64::new(0),
        }
    }

    /// Returns the tag of the whole catalog in a coding.
    pub(crate) const fn all_tag(&self, coding: Coding) -> &Tag {
        &self.all_tags[coding as usize]
    }

    /// Returns the version of the pointer that was read last, refused or not. The store is asked for any other one.
    fn seen(&self) -> Version {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.clone().unwrap_or_else(|| self.version.clone())
    }

    fn refuse(&self, version: Version) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
    }
}

impl App {
    /// Returns the published state of a catalog that is served. `name` has been checked.
    pub(crate) async fn served(&self, name: &str) -> Result<Arc<ServedCatalog>, ApiError> {
        let served = match self.pointers.get(name) {
            Some(known) if self.is_fresh(&known) => known,
            known => self.revalidated(name, known).await?,
        };
        if served.current.availability.is_available() {
            Ok(served)
        } else {
            Err(ApiError::UnknownCatalog(name.to_owned()))
        }
    }

    /// Returns the Snapshot of a published state.
    pub(crate) async fn snapshot(&self, served: &ServedCatalog) -> Result<Arc<Snapshot>, ApiError> {
        let object = served.current.snapshot;
        let hash = object.digest.sha256;
        if let Some(snapshot) = self.caches.snapshots.get(&hash) {
            return Ok(snapshot);
        }
        let load = async {
            let snapshot = parse_snapshot(&object.key(), &self.read_object(&object).await?)?;
            match snapshot.content_hash == served.current.content_hash {
                true => Ok(Arc::new(snapshot)),
                // The bytes fit their name, but the pointer names the Snapshot of another content.
                false => Err(ApiError::corrupt(&object.key(), Corruption::Mismatch)),
            }
        };
        Box::pin(self.caches.snapshots.get_or_insert_async(&hash, load)).await
    }

    fn is_fresh(&self, known: &ServedCatalog) -> bool {
        let freshness = self.settings.freshness;
        let age = || self.now_ms().saturating_sub(known.checked.load(Ordering::Relaxed));
        freshness > Duration::ZERO && Duration::from_millis(age()) < freshness
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(Instant::now().duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    async fn revalidated(&self, name: &str, known: Option<Arc<ServedCatalog>>) -> Result<Arc<ServedCatalog>, ApiError> {
        let parsed;
        let key = match &known {
            Some(known) => &known.key,
            None => {
                parsed = Key::Current(name.parse().map_err(ApiError::CatalogName)?);
                &parsed
            }
        };
        let get = Get {
            range: None,
            // A refused version counts as seen: it would else be read, verified and logged at each request.
            unless: known.as_ref().map(|known| known.seen()),
        };
        match (self.store.get(key, get).await, known.clone()) {
            (Ok(Fetched::NotModified), Some(known)) => {
                known.checked.store(self.now_ms(), Ordering::Relaxed);
                Ok(known)
            }
            (Ok(Fetched::NotModified), None) => Err(ApiError::corrupt(key, Corruption::Mismatch)),
            (Ok(Fetched::Object(object)), known) => Box::pin(self.load_pointer(key, object, known)).await,
            (Err(error), _) if error.is_not_found() => {
                // Under trust the highest serial that was served is remembered, so that to delete a pointer and to write
                // an older one is no way around the check.
                if self.settings.trust.is_none() {
                    self.pointers.remove(name);
                }
                Err(ApiError::UnknownCatalog(name.to_owned()))
            }
            (Err(error), _) => Err(ApiError::Store(error)),
        }
    }

    async fn load_pointer(
        &self,
        key: &Key,
        object: Object,
        known: Option<Arc<ServedCatalog>>,
    ) -> Result<Arc<ServedCatalog>, ApiError> {
        let version = object.info.version.clone();
        if object.info.size > POINTER_MAX {
            return Err(ApiError::corrupt(key, Corruption::TooLarge(POINTER_MAX)));
        }
        let document = self.collect(key, object).await?;
        let name = key.catalog().cloned().ok_or(ApiError::UnknownPath)?;
        let unreadable = |source| ApiError::corrupt(key, Corruption::Document(source));
        let current = match self.verify_signature(&name, &document) {
            Ok(()) => Current::from_bytes(&document).map_err(unreadable)?,
            Err(error) => return self.keep_last(known, version, &name, error.into()),
        };
        // Without trusted keys a lower serial is accepted: the catalog was removed and published again.
        if let Some(known) = known.filter(|known| known.current.serial > current.serial)
            && self.settings.trust.is_some()
        {
            let older = PointerRefused::Older {
                found: current.serial,
                served: known.current.serial,
            };
            return self.keep_last(Some(known), version, &name, older);
        }
        let kinds = [current.snapshot.kind, current.all.zstd.kind, current.all.gzip.kind];
        if kinds
            != [
                Kind::Snapshot,
                Kind::All(model::Encoding::Zstd),
                Kind::All(model::Encoding::Gzip),
            ]
        {
            return Err(ApiError::corrupt(key, Corruption::Mismatch));
        }
        let served = ServedCatalog::new(name, document, version, current);
        served.checked.store(self.now_ms(), Ordering::Relaxed);
        Ok(self.pointers.insert(Arc::new(served), self.settings.trust.is_some()))
    }

    fn verify_signature(&self, catalog: &CatalogName, document: &[u8]) -> Result<(), TrustError> {
        match &self.settings.trust {
            Some(trust) => trust.verify(catalog, document).map(drop),
            None => Ok(()),
        }
    }

    /// Serves the last verified state, if there is one. Logs each refused version once.
    fn keep_last(
        &self,
        known: Option<Arc<ServedCatalog>>,
        version: Version,
        catalog: &CatalogName,
        source: PointerRefused,
    ) -> Result<Arc<ServedCatalog>, ApiError> {
        let Some(known) = known else {
            let catalog = catalog.to_string();
            return Err(ApiError::Untrusted { catalog, source });
        };
        let error: &dyn std::error::Error = &source;
        let serial = known.current.serial;
        tracing::error!(%catalog, serial, error, "refused a new pointer, serving the last verified one");
        known.refuse(version);
        known.checked.store(self.now_ms(), Ordering::Relaxed);
        Ok(known)
    }
}

/// Reads the stored bytes of a Snapshot, which have been verified.
pub(crate) fn parse_snapshot(key: &Key, bytes: &[u8]) -> Result<Snapshot, ApiError> {
    Snapshot::from_stored(bytes).map_err(|source| ApiError::corrupt(key, Corruption::Document(source)))
}
