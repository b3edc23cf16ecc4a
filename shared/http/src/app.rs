use std::{sync::Arc, time::Instant};

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use model::Key;
use store::{Fetched, Get, Object, Store, StoreError};
use tokio::sync::Semaphore;

use crate::{
    cache::Caches,
    content::ContentBudget,
    error::{ApiError, Corruption},
    metrics::HttpMetrics,
    pointer::Pointers,
    queries::ANSWERS_MAX,
    settings::HttpSettings,
};

/// Maximum size of a document that is read into memory, in bytes. The Snapshot of 100,000 packages has half of it.
const DOCUMENT_MAX: u64 = 64 << 20;

/// State of one router that all its requests share: store, settings, pointers, caches and metrics.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: HttpSettings,
    pub(crate) pointers: Pointers,
    /// Shared with bodies that are still being sent.
    pub(crate) caches: Arc<Caches>,
    pub(crate) metrics: HttpMetrics,
    pub(crate) started: Instant,
    /// Queries of GraphQL that may run.
    pub(crate) queries: Arc<Semaphore>,
    pub(crate) contents: ContentBudget,
    /// Bytes that answers to queries may take while they are sent.
    pub(crate) answers: Arc<Semaphore>,
}

/// Returns the maximum number of queries at a time: two for each processor, since one may wait for the store. All others wait
/// for their turn, so that queries take neither all memory nor all processors.
fn queries_max() -> usize {
    2 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

impl App {
    pub(crate) fn new(store: Arc<dyn Store>, settings: HttpSettings, metrics: HttpMetrics) -> Self {
        Self {
            caches: Arc::new(Caches::new(&settings)),
            pointers: Pointers::default(),
            store,
            settings,
            metrics,
            started: Instant::now(),
            contents: ContentBudget::default(),
            answers: Arc::new(Semaphore::new(ANSWERS_MAX)),
            queries: Arc::new(Semaphore::new(queries_max())),
        }
    }

    /// Starts to read an object. [`StoreError::NotFound`] is left to the caller, who knows if it is a failure.
    pub(crate) async fn get(&self, key: &Key, get: Get) -> Result<Object, StoreError> {
        match self.store.get(key, get).await? {
            Fetched::Object(object) => Ok(object),
            Fetched::NotModified => Err(StoreError::Failed {
                operation: store::Operation::Get,
                key: key.to_string(),
                source: "the store answered a condition that was not asked".into(),
            }),
        }
    }

    /// Reads an opened object into memory and checks that it is complete.
    pub(crate) async fn collect(&self, key: &Key, object: Object) -> Result<Bytes, ApiError> {
        let expected = object.info.size;
        let limit = DOCUMENT_MAX.max(self.caches.body_max);
        if expected > limit {
            return Err(ApiError::corrupt(key, Corruption::TooLarge(limit)));
        }
        let bytes = read_to_end(object.body, expected).await.map_err(ApiError::Store)?;
        match bytes.len() as u64 {
            found if found == expected => Ok(bytes),
            found => Err(ApiError::corrupt(key, Corruption::Size { expected, found })),
        }
    }
}

/// Reads a stream of about `expected` bytes. A single chunk, which small objects and memory stores have, is not copied.
async fn read_to_end(mut body: store::Body, expected: u64) -> Result<Bytes, StoreError> {
    let Some(first) = body.try_next().await? else {
        return Ok(Bytes::new());
    };
    let Some(second) = body.try_next().await? else {
        return Ok(first);
    };
    let mut bytes = BytesMut::with_capacity(usize::try_from(expected).unwrap_or_default());
    bytes.extend_from_slice(&first);
    bytes.extend_from_slice(&second);
    while let Some(chunk) = body.try_next().await? {
        bytes.extend_from_slice(&chunk);
        // A store that sends more than it announced is not read on.
        if bytes.len() as u64 > expected {
            break;
        }
    }
    Ok(bytes.freeze())
}

/// Maximum number of bytes that are hashed, coded or parsed on the request's own thread. That takes under a millisecond, and
/// handing it to another thread takes two switches. It also keeps small requests in one order, which the simulation needs.
const INLINE_MAX: u64 = 64 << 10;

/// Runs work on `bytes` bytes: hashing, compressing, parsing. Long work goes to another thread, so that it does not keep
/// other requests of this thread waiting.
pub(crate) async fn blocking<T: Send + 'static>(bytes: u64, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= INLINE_MAX {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // The task is never cancelled, so it panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
