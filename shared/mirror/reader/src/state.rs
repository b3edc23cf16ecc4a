use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use model::{
    CatalogName, Current, Kind, ObjectRef, Sha256, ShardRef, Snapshot, StoredDocument, decode_zstd,
};
use trust::Trust;

use crate::catalogs::PublishedCatalogs;
use crate::error::{Corruption, ReaderError};
use crate::index::CatalogIndex;
use crate::objects::Extent;
use crate::pointer::KnownPointer;
use crate::stream::{Chunks, decode};

/// Published state of a catalog. A later publication does not change it.
#[derive(Debug, Clone)]
pub struct PublishedState {
    pub(crate) catalogs: PublishedCatalogs,
    pub(crate) pointer: Arc<KnownPointer>,
}

impl PublishedState {
    /// Returns the catalog.
    pub fn name(&self) -> &CatalogName {
        &self.pointer.name
    }

    /// Returns the pointer.
    pub fn current(&self) -> &Current {
        &self.pointer.current
    }

    /// Returns the bytes of `current.json` as they are stored and signed.
    pub fn document(&self) -> &Bytes {
        &self.pointer.document
    }

    /// Returns the hash of [`Self::document`].
    pub fn document_hash(&self) -> Sha256 {
        self.pointer.hash
    }

    /// Returns the hash of the stored Snapshot, which names the state.
    pub fn identity(&self) -> Sha256 {
        self.current().snapshot.digest.sha256
    }

    /// Returns the Snapshot.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`].
    pub async fn snapshot(&self) -> Result<Arc<Snapshot>, ReaderError> {
        let object = self.current().snapshot;
        let snapshot = self.catalogs.snapshot(&object).await?;
        // The bytes fit their name, but the pointer may name the Snapshot of another content.
        if snapshot.content_hash != self.current().content_hash {
            return Err(ReaderError::corrupt(&object.key(), Corruption::Mismatch));
        }
        Ok(snapshot)
    }

    /// Returns the index of the lines.
    pub(crate) async fn index(&self) -> Result<Arc<CatalogIndex>, ReaderError> {
        let snapshot = self.snapshot().await?;
        let indexes = &self.catalogs.0.caches.indexes;
        indexes
            .get_or_load(&self.identity(), || self.read_index(snapshot))
            .await
    }

    async fn read_index(&self, snapshot: Arc<Snapshot>) -> Result<Arc<CatalogIndex>, ReaderError> {
        let object = snapshot.index.with_kind(Kind::Index);
        let stored = self.catalogs.object(&object).await?;
        // An index is some ten times as large once it is decompressed.
        let parsed = self.catalogs.run(10 * object.digest.size, move || {
            CatalogIndex::from_stored(&stored, &snapshot)
        });
        match parsed.await {
            Ok(index) => Ok(Arc::new(index)),
            Err(source) => Err(ReaderError::corrupt(&object.key(), source)),
        }
    }

    /// Streams the lines of a Shard. They are not kept in memory.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`], also as an item of the stream.
    pub async fn shard(&self, shard: &ShardRef) -> Result<Chunks, ReaderError> {
        let object = shard.stored.with_kind(Kind::Package);
        let stored = self.catalogs.stream_object(&object, Extent::Prefix).await?;
        decode(stored, shard.lines.size, object.key())
    }

    /// Reads the lines of a Shard into memory.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`].
    pub async fn shard_lines(&self, shard: &ShardRef) -> Result<Vec<u8>, ReaderError> {
        let object = shard.stored.with_kind(Kind::Package);
        let stored = self.catalogs.object(&object).await?;
        let lines = decode_zstd(&stored, shard.lines.size);
        lines.map_err(ReaderError::coding(&object.key()))
    }

    /// Streams the lines of a Package. An empty name is the global group. They are not kept in
    /// memory.
    ///
    /// # Errors
    /// [`ReaderError::UnknownPackage`], and the errors of [`Self::shard`].
    pub async fn package(&self, name: &str) -> Result<Chunks, ReaderError> {
        let snapshot = self.snapshot().await?;
        let found = match name {
            "" => snapshot.global.as_ref(),
            name => snapshot.package(name),
        };
        match found {
            Some(shard) => self.shard(shard).await,
            None => Err(ReaderError::UnknownPackage(name.to_owned())),
        }
    }
}

impl PublishedCatalogs {
    /// Returns the Snapshot of any publication, from memory or into it.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`], [`ReaderError::Store`] and [`ReaderError::Busy`].
    pub async fn snapshot(&self, object: &ObjectRef) -> Result<Arc<Snapshot>, ReaderError> {
        let snapshots = &self.0.caches.snapshots;
        snapshots
            .get_or_load(&object.digest.sha256, || async {
                let stored = self.object(object).await?;
                let snapshot = Snapshot::from_stored(&stored);
                let snapshot = snapshot.map_err(ReaderError::document(&object.key()))?;
                Ok(Arc::new(snapshot))
            })
            .await
    }
}

/// Work that takes longer than a request may keep its thread.
pub type Work = Box<dyn FnOnce() + Send>;

/// Settings of the reader of a store.
#[derive(Debug, Clone)]
pub struct ReaderSettings {
    /// Maximum memory for cached bodies, indexes and snapshots together, in bytes. Default 64 MiB:
    /// hot shards and the compressed catalogs of a dozen real mirrors fit, and it is a fraction of
    /// one decoded catalog. Pointers are kept beside it, about 20 kB for each catalog.
    pub cache_bytes: u64,
    /// Time for which a pointer is served without asking the store again. Default zero: a folder
    /// answers in microseconds, and a client then never gets a state older than the published one.
    pub freshness: Duration,
    /// Keys of which at least one has to have signed each pointer. Default: no signature is
    /// required. A pointer without such a signature, or with a lower serial than one that was
    /// served before, is refused; the last verified state stays served.
    pub trust: Option<Trust>,
    /// Returns the time since a fixed moment. Default: the time since the first call.
    pub clock: fn() -> Duration,
    /// Runs long work. Default: at once, where it is called. A server with several requests at a
    /// time names threads for it.
    pub offload: fn(Work),
}

impl Default for ReaderSettings {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            freshness: Duration::ZERO,
            trust: None,
            clock: since_start,
            offload: |work| work(),
        }
    }
}

fn since_start() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
