use std::sync::atomic::Ordering;

use futures_util::TryStreamExt;
use model::ManifestEntry;
use publish::Transaction;
use store::StoreExt;
use upkeep::IntegrityCheck;

use crate::{Copier, SyncError};

/// Maximum size of an object that is held in memory while it is checked, in bytes. It then costs
/// the store one request; a larger object is staged. Almost all Shards are smaller, and sixteen of
/// them in flight take 16 MiB.
const BUFFER_BYTES: u64 = 1 << 20;

impl Copier {
    /// Fetches one object, checks every byte and puts it under its key. Returns its size.
    pub(crate) async fn bring(
        &self,
        transaction: &Transaction,
        entry: &ManifestEntry,
    ) -> Result<u64, SyncError> {
        let key = entry.key();
        let size = entry.object.digest.size;
        let damaged = SyncError::damaged(&key);
        let opened = self.origin.objects().open(&key, None).await;
        let mut body = opened.map_err(SyncError::origin)?.body;
        let mut check = IntegrityCheck::new(entry);
        let mut buffered = Vec::new();
        let mut staged = None;
        if size <= BUFFER_BYTES {
            buffered.reserve_exact(size as usize);
        } else {
            staged = Some(self.store.stage().await?);
        }
        while let Some(chunk) = body.try_next().await.map_err(SyncError::origin)? {
            self.progress
                .moved
                .fetch_add(chunk.len() as u64, Ordering::Relaxed);
            // Before the chunk is kept: a body that is too long must not fill memory or disk.
            check.update(&chunk).map_err(&damaged)?;
            match &mut staged {
                Some(staged) => staged.write(chunk).await?,
                None => buffered.extend_from_slice(&chunk),
            }
        }
        check.finish().map_err(damaged)?;
        match staged {
            Some(staged) => transaction.put_staged(entry.object, staged).await?,
            None => {
                transaction
                    .put_verified(entry.object, buffered.into())
                    .await?
            }
        };
        Ok(size)
    }
}
