use std::time::SystemTime;

use futures_util::future::join_all;
use layout::{Key, Sweep};
use store::{Condition, ReadError, Store, StoreError, StoreExt, Version};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::GcError;
use crate::settle::{Patience, STRETCH};

/// How many objects are removed side by side.
pub(crate) const SIDE_BY_SIDE: usize = 16;

/// The right to remove, for a while. Publications wait for its end before they commit.
#[derive(Debug)]
pub(crate) struct Hold {
    sweep: Sweep,
    version: Version,
    taken: Instant,
}

impl Hold {
    /// Waits for another sweep to end and announces this one; none if it has to stop before that. What is named must be
    /// read after it.
    pub(crate) async fn take(store: &dyn Store, stop: &CancellationToken) -> Result<Option<Self>, GcError> {
        loop {
            let Some(found) = stop.run_until_cancelled(idle(store)).await else {
                return Ok(None);
            };
            let (before, condition) = found?;
            let sweep = Sweep {
                serial: before.serial + 1,
                active: true,
            };
            // From before the request: publications may wait for it from when the store has it.
            let taken = Instant::now();
            // Never given up half-way: whether the store has it must be known to release it.
            match store.write_document(&Key::Sweep, &sweep, condition).await {
                Ok(version) => return Ok(Some(Self { sweep, version, taken })),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether no more may be removed under it.
    pub(crate) fn is_over(&self) -> bool {
        self.taken.elapsed() >= STRETCH
    }

    /// Removes these side by side. All of them are waited for, whatever becomes of one; the first error counts.
    ///
    /// # Errors
    /// As [`Store::delete`]. Then the hold must not be released: a removal that was given up may still happen, and whoever
    /// publishes has to wait until it cannot any more.
    pub(crate) async fn delete(&self, store: &dyn Store, keys: impl Iterator<Item = &Key>) -> Result<(), StoreError> {
        let removed = join_all(keys.map(|key| store.delete(key))).await;
        removed.into_iter().collect()
    }

    /// Somebody who thought that it had died may have taken over; then there is nothing to release.
    pub(crate) async fn release(self, store: &dyn Store) -> Result<(), StoreError> {
        let done = Sweep {
            active: false,
            ..self.sweep
        };
        let condition = Condition::Replace(self.version);
        match store.write_document(&Key::Sweep, &done, condition).await {
            Err(error) if !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }
}

/// What the clock of the store says, which is the one that dates objects: nobody else's clock need be right.
pub(super) async fn store_time(store: &dyn Store) -> Result<SystemTime, GcError> {
    loop {
        let (sweep, condition) = idle(store).await?;
        // The same document again: for publications nothing has happened.
        let sweep = Sweep { active: false, ..sweep };
        match store.write_document(&Key::Sweep, &sweep, condition).await {
            Ok(_) => return Ok(store.head(&Key::Sweep).await?.modified),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// How things stand once nobody else removes anything, and how to change that.
async fn idle(store: &dyn Store) -> Result<(Sweep, Condition), ReadError> {
    let (sweep, version, _) = Patience::default().wait(store).await?;
    Ok((sweep, version.map_or(Condition::CreateOnly, Condition::Replace)))
}
