use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use layout::{CatalogName, Current, Document, Key, Sha256, ShardRef, Snapshot};
use seal::TrustError;
use store::{Fetched, Get, Object, Version};

use crate::{
    app::App,
    cache::BodyKey,
    error::{Corruption, Error},
    fields::{Coding, Modified, Tag},
    registry::Earlier,
};

/// About what an earlier image takes: ten digests and sizes.
const IMAGE_BYTES: usize = 1 << 10;

/// One published state of a catalog with all that its answers have in common. A request works on one of them from
/// beginning to end, so it never mixes two states.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) name: CatalogName,
    pub(crate) current: Current,
    pub(crate) snapshot: Arc<Snapshot>,
    /// `current.json` as it is stored.
    pub(crate) document: Bytes,
    pub(crate) document_tag: Tag,
    pub(crate) modified: Modified,
    /// The images of what was published before.
    pub(crate) earlier: Earlier,
    all_tags: [Tag; 3],
    version: Version,
    /// A later version that is not signed by a trusted key, and so is not served.
    refused: Mutex<Option<Version>>,
    /// When the store last said that it is current, in milliseconds since the start.
    checked: AtomicU64,
}

impl Published {
    /// The tag of the whole catalog in a coding.
    pub(crate) const fn all_tag(&self, coding: Coding) -> &Tag {
        &self.all_tags[coding as usize]
    }

    /// The version of the pointer that was looked at last: there is nothing to do until it is another one.
    fn seen(&self) -> Version {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.clone().unwrap_or_else(|| self.version.clone())
    }

    fn refuse(&self, version: Version) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
    }

    /// The bytes of memory that it takes, about.
    pub(crate) fn weight(&self) -> u64 {
        let names: usize = self.snapshot.shards().map(|shard| shard.name.capacity()).sum();
        let images = self.current.previous.len() * IMAGE_BYTES;
        (images + self.snapshot.packages.capacity() * size_of::<ShardRef>() + names + 2 * self.document.len()) as u64
    }
}

/// A hash in an object's own ETag tells its contents apart; the word tells apart what is made of one content.
pub(crate) fn all_tags(content: Sha256) -> [Tag; 3] {
    Coding::ALL.map(|coding| Tag::new(content, coding.suffix()))
}

impl App {
    /// The published state of a catalog that is served. `name` has been checked.
    pub(crate) async fn published(&self, name: &str) -> Result<Arc<Published>, Error> {
        let known = self.caches.published.get(name);
        let published = match known {
            Some(known) if self.is_fresh(&known) => known,
            known => self.revalidated(name, known).await?,
        };
        if published.current.availability.is_available() {
            Ok(published)
        } else {
            Err(Error::UnknownCatalog(name.to_owned()))
        }
    }

    fn is_fresh(&self, known: &Published) -> bool {
        let freshness = self.settings.freshness;
        let age = || self.now_ms().saturating_sub(known.checked.load(Ordering::Relaxed));
        freshness > Duration::ZERO && Duration::from_millis(age()) < freshness
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(Instant::now().duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    async fn revalidated(&self, name: &str, known: Option<Arc<Published>>) -> Result<Arc<Published>, Error> {
        let key = Key::Current(name.parse().map_err(Error::CatalogName)?);
        let get = Get {
            range: None,
            unless: known.as_ref().map(|known| known.seen()),
        };
        match (self.store.get(&key, get).await, known) {
            (Ok(Fetched::NotModified), Some(known)) => {
                known.checked.store(self.now_ms(), Ordering::Relaxed);
                Ok(known)
            }
            (Ok(Fetched::NotModified), None) => Err(Error::corrupt(&key, Corruption::Mismatch)),
            (Ok(Fetched::Object(object)), known) => Box::pin(self.load(&key, object, known)).await,
            (Err(error), _) if error.is_not_found() => {
                self.caches.published.remove(name);
                Err(Error::UnknownCatalog(name.to_owned()))
            }
            (Err(error), _) => Err(Error::Store(error)),
        }
    }

    async fn load(&self, key: &Key, object: Object, known: Option<Arc<Published>>) -> Result<Arc<Published>, Error> {
        let version = object.info.version.clone();
        let document = self.collect(key, object).await?;
        let name = key.catalog().cloned().ok_or(Error::UnknownPath)?;
        if let Err(error) = self.trust(&name, &document) {
            return self.stay(known, version, &name, error);
        }
        let unreadable = |source| Error::corrupt(key, Corruption::Document(source));
        let current = Current::from_bytes(&document).map_err(unreadable)?;
        let snapshot = match known {
            // An image that was rebuilt around the same catalog.
            Some(known) if known.current.snapshot == current.snapshot => Arc::clone(&known.snapshot),
            _ => Arc::new(self.snapshot(&current).await?),
        };
        let published = Arc::new(Published {
            name,
            document_tag: Tag::new(Sha256::of(&document), ""),
            modified: Modified::new(current.published_at),
            earlier: Earlier::default(),
            all_tags: all_tags(current.content_hash),
            checked: AtomicU64::new(self.now_ms()),
            current,
            snapshot,
            document,
            version,
            refused: Mutex::default(),
        });
        let name = published.name.as_str().into();
        self.caches.published.insert(name, Arc::clone(&published));
        Ok(published)
    }

    fn trust(&self, catalog: &CatalogName, document: &[u8]) -> Result<(), TrustError> {
        match &self.settings.trust {
            Some(trust) => trust.verify(catalog, document).map(drop),
            None => Ok(()),
        }
    }

    /// Goes on with the last state that was verified, if there is one. Said once for each version that is refused.
    fn stay(
        &self,
        known: Option<Arc<Published>>,
        version: Version,
        catalog: &CatalogName,
        source: TrustError,
    ) -> Result<Arc<Published>, Error> {
        let Some(known) = known else {
            let catalog = catalog.to_string();
            return Err(Error::Untrusted { catalog, source });
        };
        let error: &dyn std::error::Error = &source;
        let serial = known.current.serial;
        tracing::error!(%catalog, serial, error, "the last verified state is served on");
        known.refuse(version);
        known.checked.store(self.now_ms(), Ordering::Relaxed);
        Ok(known)
    }

    async fn snapshot(&self, current: &Current) -> Result<Snapshot, Error> {
        let key = Key::parse(&current.snapshot.key)
            .filter(|key| matches!(key, Key::Snapshot(_, hash) if *hash == current.content_hash))
            .ok_or(Error::UnknownObject)?;
        let bytes = self.read(&key).await?;
        if Sha256::of(&bytes) != current.snapshot.sha256 {
            return Err(Error::corrupt(&key, Corruption::Hash));
        }
        parse_snapshot(&key, &bytes)
    }
}

impl App {
    /// Whether a Snapshot, published or earlier, is the one that `current.json` tells of: its key is that of its content.
    /// Of one that nothing tells of, or whose catalog is gone, nothing more can be said.
    pub(crate) async fn vouch(&self, key: &Key, bytes: &[u8]) -> Result<(), Error> {
        let Key::Snapshot(name, hash) = key else { return Ok(()) };
        match self.published(name.as_str()).await {
            Ok(published) if published.current.contradicts(*hash, Sha256::of(bytes)) => {
                // It may be repaired by the next time.
                self.caches.bodies.remove(&BodyKey::Object(key.clone()));
                Err(Error::corrupt(key, Corruption::Hash))
            }
            Err(error @ (Error::Store(_) | Error::Corrupt { .. })) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Reads a snapshot and checks that it is the one that its key names.
pub(crate) fn parse_snapshot(key: &Key, bytes: &[u8]) -> Result<Snapshot, Error> {
    let snapshot = Snapshot::from_bytes(bytes).map_err(|source| Error::corrupt(key, Corruption::Document(source)))?;
    match key {
        Key::Snapshot(_, hash) if *hash == snapshot.content_hash => Ok(snapshot),
        _ => Err(Error::corrupt(key, Corruption::Hash)),
    }
}
