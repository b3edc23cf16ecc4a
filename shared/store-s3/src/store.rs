use std::{fmt, sync::Arc};

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_s3::{Client, config};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use layout::Key;
use store::{Condition, Fetched, Get, Listed, ObjectInfo, Operation, Staged, Store, StoreError, Version};
use tokio::sync::{Mutex, MutexGuard, OnceCell, Semaphore};

use crate::{
    Place, Settings, fault, list,
    probe::Conditions,
    staged::{PARTS_IN_MEMORY, StagedObject},
};

/// The store in a bucket. Clones are handles on the same one.
#[derive(Clone)]
pub struct S3Store {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    place: Place,
    single_writer: bool,
    conditions: OnceCell<Conditions>,
    /// Held from looking to writing where the endpoint does not honour conditions.
    writing: Mutex<()>,
    /// One permit per part of a staged object that is in memory.
    memory: Semaphore,
}

impl S3Store {
    /// The store at `place`. This makes no request.
    pub fn new(config: &SdkConfig, place: Place, settings: &Settings) -> Self {
        let mut builder = config::Builder::from(config).force_path_style(settings.path_style);
        if let Some(endpoint) = &settings.endpoint {
            builder = builder.endpoint_url(endpoint);
        }
        let inner = Inner {
            client: Client::from_conf(builder.build()),
            place,
            single_writer: settings.single_writer,
            conditions: OnceCell::new(),
            writing: Mutex::new(()),
            memory: Semaphore::new(PARTS_IN_MEMORY),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Where the objects lie.
    pub fn place(&self) -> &Place {
        &self.inner.place
    }

    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    pub(crate) fn is_single_writer(&self) -> bool {
        self.inner.single_writer
    }

    pub(crate) fn known_conditions(&self) -> &OnceCell<Conditions> {
        &self.inner.conditions
    }

    pub(crate) async fn lock_writes(&self) -> MutexGuard<'_, ()> {
        self.inner.writing.lock().await
    }

    pub(crate) fn memory(&self) -> &Semaphore {
        &self.inner.memory
    }
}

impl fmt::Debug for S3Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("S3Store").field(&self.place().to_string()).finish()
    }
}

#[async_trait]
impl Store for S3Store {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        self.read(key, get).await
    }

    async fn head(&self, key: &Key) -> Result<ObjectInfo, StoreError> {
        self.info(key).await
    }

    async fn put(&self, key: &Key, bytes: Bytes, condition: Condition) -> Result<Version, StoreError> {
        self.write(key, &bytes.into(), &condition).await
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        Ok(Box::new(StagedObject::new(self.clone())))
    }

    /// S3 answers a write only when it has stored it in several places (Amazon S3 User Guide, "Data protection").
    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        let request = self.client().delete_object().bucket(&self.place().bucket);
        match request.key(self.place().name(&key.to_string())).send().await {
            Ok(_) => Ok(()),
            Err(error) if fault::meaning(&error) == fault::Meaning::Missing => Ok(()),
            Err(error) => Err(fault::failed(Operation::Delete, key, error)),
        }
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        list::list(self.clone(), prefix)
    }
}
