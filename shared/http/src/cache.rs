use std::{hash::Hash, sync::Arc, time::Instant};

use bytes::Bytes;
use graphql::{CatalogTypes, TypesError};
use model::{Key, ObjectKey, Sha256, ShardRef, Snapshot};
use olm::SearchIndex;
use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use store::Version;

use crate::{index::CatalogIndex, rfc9110::Coding, settings::HttpSettings};

/// Types of GraphQL of a catalog, or the reason for none.
pub(crate) type GraphQlTypes = Result<CatalogTypes, TypesError>;

/// Estimated memory of a cache entry beside its value, in bytes.
const ENTRY_OVERHEAD: u64 = 256;

/// Maximum number of large objects that are remembered as verified. A hundred catalogs have fewer, and an entry takes a
/// few hundred bytes.
const VERIFIED_MAX: usize = 1024;

/// Caches of what never changes, bounded together by [`HttpSettings::cache_bytes`]. Nothing in them has to be invalidated.
#[derive(Debug)]
pub(crate) struct Caches {
    /// Complete bodies of at most `body_max` bytes, verified.
    pub(crate) bodies: Cache<BodyKey, Bytes, Weight>,
    /// Indexes, by the hash of the stored Snapshot.
    pub(crate) indexes: Cache<Sha256, Arc<CatalogIndex>, Weight>,
    /// Indexes for search, by the hash of their stored documents.
    pub(crate) searches: Cache<Sha256, Arc<SearchIndex>, Weight>,
    /// Types of GraphQL, or the reason for none, by the hash of the documents with their fields.
    pub(crate) types: Cache<Sha256, Arc<GraphQlTypes>, Weight>,
    /// Snapshots, by the hash of their stored bytes.
    pub(crate) snapshots: Cache<Sha256, Arc<Snapshot>, Weight>,
    /// Stored versions of large objects whose bytes were hashed and found right, with the time of that.
    pub(crate) verified: Cache<(Key, Version), Instant>,
    /// Maximum size of a body in `bodies`, in bytes. A larger one would push out hundreds of Shards.
    pub(crate) body_max: u64,
}

/// Key of a cached body: a stored object, or a content in a coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BodyKey {
    /// The stored bytes of an object.
    Stored(ObjectKey),
    /// Bytes made from stored objects: the content with this identity in a coding.
    Made(Sha256, Coding),
}

impl Caches {
    pub(crate) fn new(settings: &HttpSettings) -> Self {
        let (eighth, sixteenth) = (settings.cache_bytes / 8, settings.cache_bytes / 16);
        Self {
            // Four parts, so that a body of an eighth of all memory still fits into one.
            bodies: cache(9 * sixteenth, 4),
            // One part each: an index of 100,000 Metas takes 8 MB in one piece.
            indexes: cache(7 * (sixteenth / 2), 1),
            // A real catalog has 300 kB of types.
            types: cache(sixteenth / 2, 1),
            searches: cache(sixteenth, 1),
            snapshots: cache(eighth, 1),
            verified: Cache::new(VERIFIED_MAX),
            body_max: eighth,
        }
    }
}

/// Returns a cache of `bytes` in `parts`, none of which takes an entry above its own share.
pub(crate) fn cache<K: Eq + Hash, V: Clone>(bytes: u64, parts: usize) -> Cache<K, V, Weight>
where
    Weight: Weighter<K, V>,
{
    let options = OptionsBuilder::new()
        .shards(parts)
        // An estimate of at least 32 for each part keeps their number; a body has 16 kB on average.
        .estimated_items_capacity(usize::try_from(bytes >> 14).unwrap_or(usize::MAX).clamp(128, 1 << 16))
        .weight_capacity(bytes)
        .build()
        .expect("both capacities are given");
    Cache::with_options(
        options,
        Weight,
        DefaultHashBuilder::default(),
        DefaultLifecycle::default(),
    )
}

/// Weighs cache entries by the memory that they take, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight;

impl Weighter<BodyKey, Bytes> for Weight {
    fn weight(&self, _: &BodyKey, body: &Bytes) -> u64 {
        body.len() as u64 + ENTRY_OVERHEAD
    }
}

impl Weighter<Sha256, Arc<CatalogIndex>> for Weight {
    fn weight(&self, _: &Sha256, index: &Arc<CatalogIndex>) -> u64 {
        index.weight() + ENTRY_OVERHEAD
    }
}

impl Weighter<Sha256, Arc<SearchIndex>> for Weight {
    fn weight(&self, _: &Sha256, index: &Arc<SearchIndex>) -> u64 {
        index.weight() + ENTRY_OVERHEAD
    }
}

impl Weighter<Sha256, Arc<GraphQlTypes>> for Weight {
    fn weight(&self, _: &Sha256, types: &Arc<GraphQlTypes>) -> u64 {
        types.as_ref().as_ref().map_or(0, CatalogTypes::weight) + ENTRY_OVERHEAD
    }
}

impl Weighter<Sha256, Arc<Snapshot>> for Weight {
    fn weight(&self, _: &Sha256, snapshot: &Arc<Snapshot>) -> u64 {
        let names: usize = snapshot.shards().map(|shard| shard.name.capacity()).sum();
        (snapshot.packages.capacity() * size_of::<ShardRef>() + names) as u64 + ENTRY_OVERHEAD
    }
}
