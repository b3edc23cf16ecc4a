use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::TryStreamExt;
use model::ManifestEntry;
use publish::Transaction;
use store::{Staged, Store, StoreError};
use upkeep::IntegrityCheck;

use crate::{Copier, SyncError};

/// Maximum size of an object that is held in memory while it is checked, in bytes. It then costs the store one request;
/// a larger object is staged. Almost all Shards are smaller, and sixteen of them in flight take 16 MiB.
const BUFFER_BYTES: u64 = 1 << 20;

/// Bytes of an object until all of them are checked.
enum Unchecked {
    Buffered(Vec<u8>),
    Staged(Box<dyn Staged>),
}

impl Copier {
    /// Fetches one object, checks every byte and puts it under its key. Returns its size.
    pub(crate) async fn bring(&self, transaction: &Transaction, entry: &ManifestEntry) -> Result<u64, SyncError> {
        let (key, size) = (entry.key(), entry.object.digest.size);
        let damaged = SyncError::damaged(&key);
        let mut body = self.origin.object(&key, size).await?;
        let mut check = IntegrityCheck::new(entry);
        let mut unchecked = Unchecked::start(&*self.store, size).await?;
        while let Some(chunk) = body.try_next().await? {
            self.progress.moved.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            // Before the chunk is kept: a body that is too long must not fill memory or disk.
            check.update(&chunk).map_err(&damaged)?;
            unchecked.write(chunk).await?;
        }
        check.finish().map_err(damaged)?;
        match unchecked {
            Unchecked::Buffered(bytes) => transaction.put_verified(entry.object, bytes.into()).await?,
            Unchecked::Staged(staged) => transaction.put_staged(entry.object, staged).await?,
        };
        Ok(size)
    }
}

impl Unchecked {
    async fn start(store: &dyn Store, size: u64) -> Result<Self, StoreError> {
        if size <= BUFFER_BYTES {
            Ok(Self::Buffered(Vec::with_capacity(size as usize)))
        } else {
            Ok(Self::Staged(store.stage().await?))
        }
    }

    async fn write(&mut self, chunk: Bytes) -> Result<(), StoreError> {
        match self {
            Self::Buffered(bytes) => bytes.extend_from_slice(&chunk),
            Self::Staged(staged) => staged.write(chunk).await?,
        }
        Ok(())
    }
}
