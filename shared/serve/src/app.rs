use std::{sync::Arc, time::Instant};

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use layout::{Key, Stored};
use store::{Fetched, Get, Object, Store, StoreError};

use crate::{
    cache::{BodyKey, Caches},
    error::{Corruption, Error},
    metrics::Metrics,
    settings::Settings,
    verify::verify,
};

/// Documents above this are not read into memory: the snapshot of 100,000 packages has half of it.
const DOCUMENT_MAX: u64 = 64 << 20;

/// All that requests share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) caches: Caches,
    pub(crate) metrics: Metrics,
    pub(crate) started: Instant,
}

impl App {
    pub(crate) fn new(store: Arc<dyn Store>, settings: Settings, metrics: Metrics) -> Self {
        Self {
            caches: Caches::new(&settings),
            store,
            settings,
            metrics,
            started: Instant::now(),
        }
    }

    /// Starts to read an object; [`StoreError::NotFound`] is left to the caller.
    pub(crate) async fn get(&self, key: &Key, get: Get) -> Result<Object, StoreError> {
        match self.store.get(key, get).await? {
            Fetched::Object(object) => Ok(object),
            Fetched::NotModified => Err(StoreError::Failed {
                operation: store::Operation::Get,
                key: key.to_string(),
                source: "it answered a condition that was not made".into(),
            }),
        }
    }

    /// Reads a whole small object that a document names.
    pub(crate) async fn read(&self, key: &Key) -> Result<Bytes, Error> {
        let object = self.get(key, Get::default()).await;
        self.collect(key, object.map_err(|error| Error::named(key, error))?)
            .await
    }

    /// Reads what is left of an object into memory and checks that it is complete.
    pub(crate) async fn collect(&self, key: &Key, object: Object) -> Result<Bytes, Error> {
        let expected = object.info.size;
        let wrong = |found| Error::corrupt(key, Corruption::Size { expected, found });
        if expected > DOCUMENT_MAX.max(self.caches.body_max) {
            return Err(wrong(expected));
        }
        let bytes = gather(object.body, expected).await.map_err(Error::Store)?;
        match bytes.len() as u64 {
            found if found == expected => Ok(bytes),
            found => Err(wrong(found)),
        }
    }

    /// An immutable object that fits the cache, from it or into it, verified once.
    pub(crate) async fn cached(&self, key: &Key, stored: Option<Stored>) -> Result<Bytes, Error> {
        let entry = BodyKey::Object(key.clone());
        if let Some(bytes) = self.caches.bodies.get(&entry) {
            return Ok(bytes);
        }
        let load = async {
            let bytes = self.read(key).await?;
            let (key, copy) = (key.clone(), bytes.clone());
            blocking(move || verify(&key, &copy, stored)).await?;
            Ok(bytes)
        };
        Box::pin(self.caches.bodies.get_or_insert_async(&entry, load)).await
    }
}

/// One chunk, which is what small objects and memory stores give, is passed on as it is.
async fn gather(mut body: store::Body, expected: u64) -> Result<Bytes, StoreError> {
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
        if bytes.len() as u64 > expected {
            break;
        }
    }
    Ok(bytes.freeze())
}

/// Hashing and compressing take long enough to keep other requests of the same thread waiting.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // It is never cancelled, so it panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
