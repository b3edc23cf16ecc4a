use async_trait::async_trait;
use bytes::Bytes;
use model::Key;

use super::{FolderStore, Temp};
use crate::{Condition, Operation, Staged, StoreError, Version};

/// Number of bytes that are collected before a thread is borrowed to write them.
const BATCH: usize = 256 << 10;

/// Name of an object without a key, for errors.
const NAME: &str = "a staged object";

/// Temporary file, and the bytes that are not written to it yet.
pub(super) struct StagedFile {
    store: FolderStore,
    /// `None` once a write failed or was dropped half way: the end of the file is not known then.
    temp: Option<Temp>,
    pending: Vec<Bytes>,
    pending_size: usize,
}

impl StagedFile {
    pub(super) fn new(store: FolderStore, temp: Temp) -> Self {
        Self {
            store,
            temp: Some(temp),
            pending: Vec::new(),
            pending_size: 0,
        }
    }

    fn take(&mut self) -> Result<(Temp, Vec<Bytes>), StoreError> {
        self.pending_size = 0;
        let pending = std::mem::take(&mut self.pending);
        let temp = self
            .temp
            .take()
            .ok_or_else(|| StoreError::failed(Operation::Put, &NAME, "an earlier write to it did not succeed"))?;
        Ok((temp, pending))
    }
}

#[async_trait]
impl Staged for StagedFile {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.pending_size += bytes.len();
        self.pending.push(bytes);
        if self.pending_size < BATCH {
            return Ok(());
        }
        let (mut temp, pending) = self.take()?;
        let write = move |_: &_| pending.iter().try_for_each(|bytes| temp.write(bytes)).map(|()| temp);
        self.temp = Some(self.store.blocking(Operation::Put, NAME, write).await?);
        Ok(())
    }

    async fn commit(mut self: Box<Self>, key: &Key, condition: Condition) -> Result<Version, StoreError> {
        let (mut temp, pending) = self.take()?;
        let commit = {
            let key = key.clone();
            move |inner: &super::Shared| {
                pending.iter().try_for_each(|bytes| temp.write(bytes))?;
                inner.publish(temp, &key, &condition)
            }
        };
        let version = self.store.blocking(Operation::Put, key, commit).await?;
        version.ok_or_else(|| StoreError::conflict(key))
    }
}
