use crate::{Condition, Fetched, Get, Listed, ObjectInfo, Operation, Staged, Stat, Store, StoreError, Version};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use model::Key;

use crate::s3::{S3Store, list};

/// Store in a bucket for reading only. A write is an error without a request, also if the credentials allow it. A program
/// that has no other store does not link the code of writes.
#[derive(Debug, Clone)]
pub struct S3Reader(S3Store);

/// Cause of every refused write.
#[derive(Debug, thiserror::Error)]
#[error("the store was opened to read only")]
struct ReadOnly;

impl S3Reader {
    /// Returns a reader of a store. Clones share it.
    pub const fn new(store: S3Store) -> Self {
        Self(store)
    }
}

fn refused<T>(operation: Operation, what: &dyn std::fmt::Display) -> Result<T, StoreError> {
    Err(StoreError::denied(operation, what, ReadOnly))
}

#[async_trait]
impl Store for S3Reader {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        self.0.read(key, get).await
    }

    async fn head(&self, key: &Key) -> Result<ObjectInfo, StoreError> {
        self.0.info(key).await
    }

    async fn stat(&self, key: &Key) -> Result<Stat, StoreError> {
        self.0.dated_info(key).await
    }

    async fn put(&self, key: &Key, _bytes: Bytes, _condition: Condition) -> Result<Version, StoreError> {
        refused(Operation::Put, key)
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        refused(Operation::Put, self.0.place())
    }

    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        refused(Operation::Delete, key)
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        list::list(self.0.clone(), prefix)
    }
}
