use std::{hash::Hash, sync::Arc, time::Duration};

use bytes::Bytes;
use model::{Encoding, Key, ObjectKey, Sha256, ShardRef, Snapshot};
use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use store::Version;

use crate::index::CatalogIndex;

/// Estimated memory of a cache entry beside its value, in bytes.
const ENTRY_OVERHEAD: u64 = 256;

/// Maximum number of large objects that are remembered as verified. A hundred catalogs have fewer, and an entry takes a
/// few hundred bytes.
const VERIFIED_MAX: usize = 1024;

/// Caches of what never changes, bounded together by [`crate::ReaderSettings::cache_bytes`]. Nothing in them has to be
/// invalidated. A sixteenth is left to the fronts.
#[derive(Debug)]
pub(crate) struct Caches {
    /// Complete bodies, most of them of at most `body_max` bytes, verified.
    pub(crate) bodies: WeightedCache<BodyKey, Bytes>,
    /// Indexes, by the hash of the stored Snapshot.
    pub(crate) indexes: WeightedCache<Sha256, Arc<CatalogIndex>>,
    /// Snapshots, by the hash of their stored bytes.
    pub(crate) snapshots: WeightedCache<Sha256, Arc<Snapshot>>,
    /// Stored versions of large objects whose bytes were hashed and found right, with the time of that.
    pub(crate) verified: Cache<(Key, Version), Duration>,
    /// Maximum size of a body in `bodies`, in bytes. A larger one would push out hundreds of Shards.
    pub(crate) body_max: u64,
}

/// Key of a cached body: a stored object, or a content in an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyKey {
    /// The stored bytes of an object.
    Stored(ObjectKey),
    /// Bytes made from stored objects: the content with this identity in an encoding.
    Made(Sha256, Encoding),
}

impl Caches {
    pub(crate) fn new(bytes: u64) -> Self {
        let (eighth, sixteenth) = (bytes / 8, bytes / 16);
        Self {
            // Four parts, so that a body of an eighth of all memory still fits into one.
            bodies: WeightedCache::new(9 * sixteenth, 4, |body| body.len() as u64),
            // One part each: an index of 100,000 Metas takes 8 MB in one piece.
            indexes: WeightedCache::new(4 * sixteenth, 1, |index| index.weight()),
            snapshots: WeightedCache::new(eighth, 1, snapshot_weight),
            verified: Cache::new(VERIFIED_MAX),
            body_max: eighth,
        }
    }
}

fn snapshot_weight(snapshot: &Arc<Snapshot>) -> u64 {
    let names: usize = snapshot.shards().map(|shard| shard.name.capacity()).sum();
    (snapshot.packages.capacity() * size_of::<ShardRef>() + names) as u64
}

/// Cache of values that take a known memory.
#[derive(Debug)]
pub struct WeightedCache<K, V>(Cache<K, V, WeightOf<V>>);

/// Weighs cache entries by the memory that they take, in bytes.
#[derive(Debug)]
struct WeightOf<V>(fn(&V) -> u64);

impl<V> Clone for WeightOf<V> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<K, V> Weighter<K, V> for WeightOf<V> {
    fn weight(&self, _: &K, value: &V) -> u64 {
        (self.0)(value) + ENTRY_OVERHEAD
    }
}

impl<K: Eq + Hash + Clone, V: Clone> WeightedCache<K, V> {
    /// Returns a cache of `bytes` in `parts`, none of which takes an entry above its own share.
    pub fn new(bytes: u64, parts: usize, weight: fn(&V) -> u64) -> Self {
        let options = OptionsBuilder::new()
            .shards(parts)
            // An estimate of at least 32 for each part keeps their number; a body has 16 kB on average.
            .estimated_items_capacity(usize::try_from(bytes >> 14).unwrap_or(usize::MAX).clamp(128, 1 << 16))
            .weight_capacity(bytes)
            .build()
            .expect("both capacities are given");
        let (hasher, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Self(Cache::with_options(options, WeightOf(weight), hasher, lifecycle))
    }

    /// Returns a value that is in the cache.
    pub fn get(&self, key: &K) -> Option<V> {
        self.0.get(key)
    }

    /// Returns a value from the cache, or loads it. Equal loads at the same time happen once.
    ///
    /// # Errors
    /// The error of `load`, which is not kept.
    pub async fn get_or_load<E>(&self, key: &K, load: impl Future<Output = Result<V, E>>) -> Result<V, E> {
        match self.0.get(key) {
            Some(value) => Ok(value),
            None => Box::pin(self.0.get_or_insert_async(key, load)).await,
        }
    }
}
