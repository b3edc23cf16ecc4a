use std::{hash::Hash, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::lock::{Mutex, MutexGuard};
use model::{Encoding, Key, ObjectKey, Sha256, ShardRef, Snapshot};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use store::Version;

use crate::{error::ReaderError, index::CatalogIndex};

/// Estimated memory of a cache entry beside its value, in bytes.
const ENTRY_OVERHEAD: u64 = 256;

/// Maximum number of large objects that are remembered as verified. A hundred catalogs have fewer,
/// and an entry takes a few hundred bytes.
const VERIFIED_MAX: usize = 1024;

/// Maximum number of keys that are remembered because their values are not kept, and of requests
/// that wait for one of them to be made.
const UNKEPT_MAX: usize = 1024;
const WAITING_MAX: usize = 16;

/// Caches of what never changes, bounded together by [`crate::ReaderSettings::cache_bytes`].
/// Nothing in them has to be invalidated. A sixteenth is left to the fronts.
#[derive(Debug)]
pub(crate) struct Caches {
    /// Complete bodies, most of them of at most `body_max` bytes, verified.
    pub(crate) bodies: WeightedCache<BodyKey, Bytes>,
    /// Indexes, by the hash of the stored Snapshot.
    pub(crate) indexes: WeightedCache<Sha256, Arc<CatalogIndex>>,
    /// Snapshots, by the hash of their stored bytes.
    pub(crate) snapshots: WeightedCache<Sha256, Arc<Snapshot>>,
    /// Stored versions of large objects whose bytes were hashed and found right, with the time of
    /// that.
    pub(crate) verified: Cache<(Key, Version), Duration>,
    /// Maximum size of a body in `bodies`, in bytes. A larger one would push out hundreds of
    /// Shards.
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
        let eighth = bytes / 8;
        let sixteenth = bytes / 16;
        Self {
            // Four parts, so that a body of an eighth of all memory still fits into one.
            bodies: WeightedCache::new(9 * sixteenth, 4, |body| body.len() as u64),
            // One part each: an index of 100,000 Metas takes 13 MB in one piece.
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
///
/// A value above the share of a part is not kept, and made again at each request for it. Such
/// values are made one at a time, so that they take the memory and the time of one, and a request
/// is refused if too many wait already. So making one must not ask the same cache for another that
/// is as large.
#[derive(Debug)]
pub struct WeightedCache<K, V> {
    kept: Cache<K, V, WeightOf<V>>,
    weight: fn(&V) -> u64,
    /// Maximum weight of a value that is kept, in bytes: the last 3 % of a part take none.
    kept_max: u64,
    /// Keys of values above it.
    unkept: Cache<K, ()>,
    turn: Mutex<()>,
    /// Each request that waits for its turn holds one more of it.
    waiting: Arc<()>,
}

/// Weighs cache entries by the memory that they take, in bytes.
#[derive(Debug, Clone)]
struct WeightOf<V>(fn(&V) -> u64);

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
            // An estimate of at least 32 for each part keeps their number; a body has 16 kB on
            // average.
            .estimated_items_capacity(
                usize::try_from(bytes >> 14)
                    .unwrap_or(usize::MAX)
                    .clamp(128, 1 << 16),
            )
            .weight_capacity(bytes)
            .build()
            .expect("both capacities are given");
        let kept = Cache::with_options(
            options,
            WeightOf(weight),
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        );
        Self {
            kept,
            weight,
            kept_max: bytes / parts as u64 / 16 * 15,
            // A cache without memory is meant to keep nothing.
            unkept: Cache::new(if bytes == 0 { 0 } else { UNKEPT_MAX }),
            turn: Mutex::default(),
            waiting: Arc::default(),
        }
    }

    /// Returns a value that is in the cache.
    pub fn get(&self, key: &K) -> Option<V> {
        self.kept.get(key)
    }

    /// Returns a value from the cache, or loads it. Equal loads at the same time happen once, where
    /// requests may wait. `load` is called only if the value is missing: its future has kilobytes,
    /// and to move it takes longer than to find a value.
    ///
    /// # Errors
    /// The error of `load`, which is not kept, and [`ReaderError::Busy`].
    pub async fn get_or_load<E: From<ReaderError>, F>(
        &self,
        key: &K,
        load: impl FnOnce() -> F,
    ) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        if let Some(value) = self.kept.get(key) {
            return Ok(value);
        }
        let turn = match self.unkept.get(key) {
            Some(()) if WAITS => Some(self.turn().await?),
            Some(()) | None => None,
        };
        let value = if WAITS {
            Box::pin(self.kept.get_or_insert_async(key, load())).await?
        } else {
            let value = Box::pin(load()).await?;
            self.kept.insert(key.clone(), value.clone());
            value
        };
        if turn.is_none() && (self.weight)(&value) > self.kept_max {
            self.unkept.insert(key.clone(), ());
        }
        Ok(value)
    }

    /// Waits until no other value is made that is not kept.
    async fn turn(&self) -> Result<MutexGuard<'_, ()>, ReaderError> {
        let waiting = Arc::clone(&self.waiting);
        // The cache itself holds one.
        if Arc::strong_count(&waiting) > WAITING_MAX + 1 {
            return Err(ReaderError::Busy);
        }
        Ok(self.turn.lock().await)
    }
}

/// True where a request may wait for the future of another. In WebAssembly it may not: a Worker
/// stops the futures of a request whose client has gone, without dropping them, and refuses to
/// continue those of another request.
const WAITS: bool = !cfg!(target_arch = "wasm32");

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::{FutureExt, future::join_all};

    use super::*;

    #[tokio::test]
    async fn value_above_the_share_is_made_one_at_a_time_and_few_wait() {
        let cache = WeightedCache::<u8, u64>::new(4096, 1, |value| *value);
        let load = |value| cache.get_or_load::<ReaderError, _>(&1, move || ready(Ok(value)));
        assert_eq!(
            (load(5000).await.unwrap(), load(5001).await.unwrap()),
            (5000, 5001)
        );
        let mut running = Box::pin(cache.get_or_load::<ReaderError, _>(&1, pending));
        assert!(running.as_mut().now_or_never().is_none());
        let waiting = join_all((0..WAITING_MAX as u64).map(load));
        let mut waiting = Box::pin(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(matches!(load(1).await, Err(ReaderError::Busy)));
        // Another value is not kept waiting, nor are those that wait once the first request is
        // given up.
        assert_eq!(
            cache
                .get_or_load::<ReaderError, _>(&2, || ready(Ok(1)))
                .await
                .unwrap(),
            1
        );
        drop(running);
        assert!(waiting.await.iter().all(Result::is_ok));
        load(5000).await.unwrap();
    }
}
