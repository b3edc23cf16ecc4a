use std::sync::atomic::Ordering;

use futures_util::TryStreamExt;
use layout::Named;
use store::{Staged, StoreError, Version};

use crate::{Copier, Flaw, SyncError, check::Check, plan::Missing};

/// Objects up to this size are held in memory, which costs a store one request; larger ones are staged.
const HELD_BYTES: u64 = 1 << 20;

/// Where the bytes of an object wait until all of them are checked.
enum Landing {
    Held(Vec<u8>),
    Staged(Box<dyn Staged>),
}

impl Copier {
    /// Fetches one object, checks every byte of it and puts it under its key. Returns its size.
    pub(crate) async fn bring(&self, missing: &Missing) -> Result<u64, SyncError> {
        let named = &missing.named;
        let flawed = |source: Flaw| SyncError::Flawed {
            key: named.key.to_string(),
            source,
        };
        let mut body = self.origin.object(&named.key, named.stored.size).await?;
        let mut check = Check::new(named);
        let mut landing = self.landing(named.stored.size).await?;
        while let Some(chunk) = body.try_next().await? {
            self.progress.moved.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            check.update(&chunk).map_err(flawed)?;
            match &mut landing {
                Landing::Held(bytes) => bytes.extend_from_slice(&chunk),
                Landing::Staged(staged) => staged.write(chunk).await?,
            }
        }
        check.finish().map_err(flawed)?;
        let condition = missing.condition.clone();
        let put = match landing {
            Landing::Held(bytes) => self.store.put(&named.key, bytes.into(), condition).await,
            Landing::Staged(staged) => staged.commit(&named.key, condition).await,
        };
        self.is_there(named, put).await?;
        Ok(named.stored.size)
    }

    /// What to make of a put. That somebody else was faster is no failure if he wrote the same: catalogs that are copied
    /// side by side share Shards and parts of images, and would otherwise make each other start again and again.
    pub(crate) async fn is_there(&self, named: &Named, put: Result<Version, StoreError>) -> Result<(), SyncError> {
        match put {
            Err(error) if error.is_conflict() => match self.look(named.clone()).await? {
                (_, None) => Ok(()),
                (_, Some(_)) => Err(error.into()),
            },
            put => Ok(put.map(drop)?),
        }
    }

    async fn landing(&self, size: u64) -> Result<Landing, SyncError> {
        if size <= HELD_BYTES {
            Ok(Landing::Held(Vec::with_capacity(size as usize)))
        } else {
            Ok(Landing::Staged(self.store.stage().await?))
        }
    }
}
