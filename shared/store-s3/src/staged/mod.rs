//! Objects that are written piece by piece: kept in memory while they are small, then in an unnamed file, and sent when
//! their key is known.

mod source;
mod spool;
mod upload;

use async_trait::async_trait;
use bytes::Bytes;
use layout::Key;
use store::{Condition, Operation, Staged, StoreError, Version};

pub(crate) use self::source::Source;
use self::spool::Spool;
use crate::S3Store;

/// The size of a part: above the 5 MiB that S3 wants (Amazon S3 User Guide, "Multipart upload limits"), and at its
/// limit of 10,000 parts an object may still have 78 GiB.
pub(crate) const PART: u64 = 8 << 20;

/// How many parts of all staged objects of a store are in memory and in flight: 32 MiB, a quarter of the smallest
/// Lambda, and enough to fill a fast line.
pub(crate) const PARTS_IN_MEMORY: usize = 4;

/// An object that is being written.
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
