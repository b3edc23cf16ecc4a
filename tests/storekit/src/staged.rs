use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use model::Key;

use crate::{Action, MemoryStore};
use store::{Condition, Operation, Staged, StoreError, Version};

/// Object that is being written in memory.
pub(crate) struct StagedBytes {
    pub(crate) store: MemoryStore,
    pub(crate) bytes: BytesMut,
}

#[async_trait]
impl Staged for StagedBytes {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        let store = self.store.clone();
        let work = || {
            self.bytes.extend_from_slice(&bytes);
            Ok(())
        };
        store.call(Operation::Put, Action::Write, None, work).await
    }

    async fn commit(self: Box<Self>, key: &Key, condition: Condition) -> Result<Version, StoreError> {
        let Self { store, bytes } = *self;
        let action = Action::Commit(condition.clone());
        store.write(key, bytes.freeze(), condition, action).await
    }
}
