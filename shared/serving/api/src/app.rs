//! State that all requests of one router share.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use model::{CatalogImage, Encoding, Sha256};
use olm::SearchIndex;
use quick_cache::sync::Cache;
use reader::{PublishedCatalogs, PublishedState, WeightedCache};

use crate::metrics::HttpMetrics;
use crate::rfc9110::{Modified, Tag};
use crate::settings::HttpSettings;

/// Maximum number of states whose fields are remembered: those of a thousand catalogs take less
/// than a megabyte.
const HEADS_MAX: usize = 1024;

/// Maximum memory for earlier images, in bytes: those of a state take a few kilobytes.
const EARLIER_IMAGES_BYTES: u64 = 1 << 20;

/// Images by content hash, newest publication first.
pub(crate) type Images = Arc<[(Sha256, CatalogImage)]>;

/// State of one router that all its requests share: settings, published catalogs, caches and
/// metrics.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) catalogs: PublishedCatalogs,
    pub(crate) settings: HttpSettings,
    pub(crate) metrics: HttpMetrics,
    heads: Cache<Sha256, Arc<StateHead>>,
    /// Images of earlier publications, by the pointer that remembers them and the minute in which
    /// they were read.
    pub(crate) earlier_images: WeightedCache<(Sha256, u64), Images>,
    /// Indexes for search, by the hash of their stored documents.
    pub(crate) searches: WeightedCache<Sha256, Arc<SearchIndex>>,
}

/// Fields of answers that follow from a published state. They are made once: the most frequent
/// question formats and hashes nothing.
#[derive(Debug)]
pub(crate) struct StateHead {
    /// Content hash as a line.
    pub(crate) hash_line: Bytes,
    pub(crate) hash_tag: Tag,
    pub(crate) modified: Modified,
    /// Tags of the pointer by the number of the encoding.
    pub(crate) document_tags: [Tag; 3],
    /// Tags of the whole catalog by the number of the encoding.
    pub(crate) all_tags: [Tag; 3],
}

impl StateHead {
    fn new(state: &PublishedState) -> Self {
        let current = state.current();
        let hash_line = Bytes::from(format!("{}\n", current.content_hash));
        Self {
            hash_tag: Tag::of_stored(Sha256::of(&hash_line)),
            hash_line,
            document_tags: Encoding::ALL
                .map(|encoding| Tag::of_made(state.document_hash(), encoding)),
            modified: Modified::new(current.published_at),
            all_tags: Encoding::ALL.map(|encoding| {
                // Made on the fly, the bytes are those of the content hash.
                let stored = current.all.get(encoding).map(|object| object.digest.sha256);
                Tag::of_stored(stored.unwrap_or(current.content_hash))
            }),
        }
    }
}

impl App {
    pub(crate) fn new(
        catalogs: PublishedCatalogs,
        settings: HttpSettings,
        metrics: HttpMetrics,
    ) -> Self {
        Self {
            // The part that the reader leaves.
            searches: WeightedCache::new(catalogs.cache_bytes() / 16, 1, |index| index.weight()),
            heads: Cache::new(HEADS_MAX),
            earlier_images: WeightedCache::new(EARLIER_IMAGES_BYTES, 1, images_weight),
            catalogs,
            settings,
            metrics,
        }
    }

    /// Returns the fields of a published state, from memory or into it.
    pub(crate) fn head(&self, state: &PublishedState) -> Arc<StateHead> {
        let Ok(head) = self.heads.get_or_insert_with(&state.document_hash(), || {
            Ok::<_, Infallible>(Arc::new(StateHead::new(state)))
        });
        head
    }
}

/// Returns about the memory that images take, in bytes.
fn images_weight(images: &Images) -> u64 {
    let blobs: usize = images.iter().map(|(_, image)| image.blobs().count()).sum();
    64 * blobs as u64
}
