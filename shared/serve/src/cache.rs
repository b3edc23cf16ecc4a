use std::{hash::Hash, sync::Arc};

use bytes::Bytes;
use layout::{Key, Sha256};
use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};

use store::Version;

use crate::{fields::Coding, index::CatalogIndex, published::Published, settings::Settings};

/// What an entry takes beside its bytes, about.
const OVERHEAD: u64 = 256;

/// How many large objects are known to be right: a hundred catalogs have fewer, and an entry is a few hundred bytes.
const PROVEN: usize = 1024;

/// Everything that is kept in memory, bounded together by [`Settings::cache_bytes`].
#[derive(Debug)]
pub(crate) struct Caches {
    /// Complete bodies.
    pub(crate) bodies: Cache<BodyKey, Bytes, Weight>,
    /// Indexes by content hash.
    pub(crate) indexes: Cache<Sha256, Arc<CatalogIndex>, Weight>,
    /// The last known state of each catalog, by name.
    pub(crate) published: Cache<Box<str>, Arc<Published>, Weight>,
    /// The states of large objects that were read and found right, and what their stored bytes hash to.
    pub(crate) proven: Cache<(Key, Version), Sha256>,
    /// The largest body that is kept: larger ones would push out hundreds of shards.
    pub(crate) body_max: u64,
}

/// What never changes and therefore is never invalidated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum BodyKey {
    /// A stored object.
    Object(Key),
    /// What was made from stored objects: the content of that identity in a coding.
    Made(Sha256, Coding),
}

impl Caches {
    /// Five eighths for bodies, in four parts so that one of an eighth of all still fits; two for indexes, each in
    /// one piece (100,000 Metas take 8 MB); one for snapshots.
    pub(crate) fn new(settings: &Settings) -> Self {
        let eighth = settings.cache_bytes / 8;
        Self {
            bodies: cache(5 * eighth, 4),
            indexes: cache(2 * eighth, 1),
            published: cache(eighth, 1),
            proven: Cache::new(PROVEN),
            body_max: eighth,
        }
    }
}

fn cache<K: Eq + Hash, V: Clone>(bytes: u64, shards: usize) -> Cache<K, V, Weight>
where
    Weight: Weighter<K, V>,
{
    let options = OptionsBuilder::new()
        .shards(shards)
        // An estimate of at least 32 for each shard keeps their number; a body has 16 kB on average.
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

/// Weighs entries by the memory that they take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight;

impl Weighter<BodyKey, Bytes> for Weight {
    fn weight(&self, _: &BodyKey, body: &Bytes) -> u64 {
        body.len() as u64 + OVERHEAD
    }
}

impl Weighter<Sha256, Arc<CatalogIndex>> for Weight {
    fn weight(&self, _: &Sha256, index: &Arc<CatalogIndex>) -> u64 {
        index.weight() + OVERHEAD
    }
}

impl Weighter<Box<str>, Arc<Published>> for Weight {
    fn weight(&self, _: &Box<str>, published: &Arc<Published>) -> u64 {
        published.weight() + OVERHEAD
    }
}
