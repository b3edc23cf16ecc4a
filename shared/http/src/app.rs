use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use model::{Encoding, Sha256};
use olm::SearchIndex;
use quick_cache::sync::Cache;
use reader::{PublishedCatalogs, PublishedState, WeightedCache};

use crate::{
    metrics::HttpMetrics,
    rfc9110::{Modified, Tag},
    routes::EarlierImages,
    settings::HttpSettings,
};

/// Maximum number of states whose fields are remembered: those of a thousand catalogs take less than a megabyte.
const HEADS_MAX: usize = 1024;

/// State of one router that all its requests share: settings, published catalogs, caches and metrics.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) catalogs: PublishedCatalogs,
    pub(crate) settings: HttpSettings,
    pub(crate) metrics: HttpMetrics,
    heads: Cache<Sha256, Arc<StateHead>>,
    /// Indexes for search, by the hash of their stored documents.
    pub(crate) searches: WeightedCache<Sha256, Arc<SearchIndex>>,
}

/// Fields of answers that follow from a published state. They are made once: the most frequent question formats and hashes
/// nothing.
#[derive(Debug)]
pub(crate) struct StateHead {
    pub(crate) document_tag: Tag,
    /// Content hash as a line.
    pub(crate) hash_line: Bytes,
    pub(crate) hash_tag: Tag,
    pub(crate) modified: Modified,
    /// Images of earlier publications, read at the first request for one.
    pub(crate) earlier: EarlierImages,
    all_tags: [Tag; 3],
}

impl StateHead {
    fn new(state: &PublishedState) -> Self {
        let current = state.current();
        let hash_line = Bytes::from(format!("{}\n", current.content_hash));
        Self {
            hash_tag: Tag::of_stored(Sha256::of(&hash_line)),
            hash_line,
            document_tag: Tag::of_stored(state.document_hash()),
            modified: Modified::new(current.published_at),
            earlier: EarlierImages::default(),
            all_tags: Encoding::ALL.map(|encoding| match encoding {
                Encoding::Zstd => Tag::of_stored(current.all.zstd.digest.sha256),
                Encoding::Gzip => Tag::of_stored(current.all.gzip.digest.sha256),
                // Stored or made on the fly, the bytes are those of the content hash.
                Encoding::Identity => Tag::of_stored(current.content_hash),
            }),
        }
    }

    /// Returns the tag of the whole catalog in an encoding.
    pub(crate) const fn all_tag(&self, encoding: Encoding) -> &Tag {
        &self.all_tags[encoding as usize]
    }
}

impl App {
    pub(crate) fn new(catalogs: PublishedCatalogs, settings: HttpSettings, metrics: HttpMetrics) -> Self {
        Self {
            // The part that the reader leaves.
            searches: WeightedCache::new(catalogs.cache_bytes() / 16, 1, |index| index.weight()),
            heads: Cache::new(HEADS_MAX),
            catalogs,
            settings,
            metrics,
        }
    }

    /// Returns the fields of a published state, from memory or into it.
    pub(crate) fn head(&self, state: &PublishedState) -> Arc<StateHead> {
        let make = || Ok::<_, Infallible>(Arc::new(StateHead::new(state)));
        let Ok(head) = self.heads.get_or_insert_with(&state.document_hash(), make);
        head
    }
}
