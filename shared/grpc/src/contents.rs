use std::sync::Arc;

use bytes::Bytes;
use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use registry::{BundleContent, BundleKey, BundleQuery};

/// Memory for contents, in bytes: those of a package of 200 bundles with a megabyte each.
const CONTENTS_BYTES: u64 = 8 << 20;

/// Estimated number of contents.
const CONTENTS: usize = 512;

/// Length from which the content of a line is kept, in bytes. A shorter one is made again in a fifth of a millisecond, and takes
/// the place of none that needs milliseconds.
pub(crate) const LARGE_LINE: u64 = 64 << 10;

/// Contents of large bundles, compressed, by the lines of their package and the position of their own line.
#[derive(Clone)]
pub(crate) struct ContentCache(Arc<Cache<BundleKey, Bytes, ContentWeight>>);

#[derive(Clone)]
struct ContentWeight;

impl Weighter<BundleKey, Bytes> for ContentWeight {
    fn weight(&self, _: &BundleKey, content: &Bytes) -> u64 {
        content.len() as u64 + 128
    }
}

impl Default for ContentCache {
    fn default() -> Self {
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(CONTENTS)
            .weight_capacity(CONTENTS_BYTES)
            .build()
            .expect("both capacities are given");
        let hasher = DefaultHashBuilder::default();
        Self(Arc::new(Cache::with_options(
            options,
            ContentWeight,
            hasher,
            DefaultLifecycle::default(),
        )))
    }
}

impl ContentCache {
    /// Returns the content of a bundle, if it is known.
    pub(crate) fn get(&self, query: &BundleQuery) -> Option<BundleContent> {
        if query.bundle_line.length < LARGE_LINE {
            return None;
        }
        let compressed = self.0.get(&query.key())?;
        BundleContent::from_compressed(&compressed).ok()
    }

    /// Keeps the content of a bundle, if it is large.
    pub(crate) fn keep(&self, query: &BundleQuery, content: &BundleContent) {
        if query.bundle_line.length >= LARGE_LINE
            && let Ok(compressed) = content.to_compressed()
        {
            self.0.insert(query.key(), compressed.into());
        }
    }
}
