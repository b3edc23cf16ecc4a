use std::sync::atomic::Ordering;

use futures_util::TryStreamExt;
use store::Staged;

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
        match landing {
            Landing::Held(bytes) => self.store.put(&named.key, bytes.into(), condition).await?,
            Landing::Staged(staged) => staged.commit(&named.key, condition).await?,
        };
        Ok(named.stored.size)
    }

    async fn landing(&self, size: u64) -> Result<Landing, SyncError> {
        if size <= HELD_BYTES {
            Ok(Landing::Held(Vec::with_capacity(size as usize)))
        } else {
            Ok(Landing::Staged(self.store.stage().await?))
        }
    }
}
