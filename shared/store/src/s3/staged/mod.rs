//! Objects that are written piece by piece. They are kept in memory while they are small, then in an unnamed file, and sent
//! when their key is known.

mod source;
mod spool;

use crate::{Condition, Operation, Staged, StoreError, Version};
use async_trait::async_trait;
use bytes::Bytes;
use model::Key;

pub(crate) use self::source::Source;
use self::spool::Spool;
use crate::s3::S3Store;

/// Object that is being written, in memory or in a file.
pub(crate) struct StagedObject {
    store: S3Store,
    spool: Spool,
}

impl StagedObject {
    pub(crate) fn new(store: S3Store) -> Self {
        Self {
            store,
            spool: Spool::default(),
        }
    }
}

#[async_trait]
impl Staged for StagedObject {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        let written = self.spool.write(&bytes).await;
        written.map_err(|error| StoreError::failed(Operation::Put, &"a temporary file", error))
    }

    async fn commit(self: Box<Self>, key: &Key, condition: Condition) -> Result<Version, StoreError> {
        let Self { store, spool } = *self;
        let source = spool.finish().await;
        let source = source.map_err(|error| StoreError::failed(Operation::Put, &"a temporary file", error))?;
        store.write(key, &source, &condition).await
    }
}
