//! The space for copies on disk.

use std::sync::Arc;

use oci::{LimitExceeded, NamedLimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Part of a [`DownloadSpace`] that one image may take: a slow registry does not keep the space
/// from all others.
const SHARE: u64 = 4;

/// Bytes that one permit of the semaphore of a [`DownloadSpace`] stands for.
const PERMIT_BYTES: u64 = 1 << 20;

/// Space in the folder for temporary files that the copies of all images may take at a time. Clones
/// share it.
#[derive(Debug, Clone)]
pub struct DownloadSpace {
    bytes: u64,
    permits: Arc<Semaphore>,
}

impl DownloadSpace {
    /// Default capacity: 4 GiB.
    pub const DEFAULT_BYTES: u64 = 4 << 30;

    /// Creates a space of this many bytes. One image may take a quarter of it.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            permits: Arc::new(Semaphore::new(permits(bytes))),
        }
    }

    /// Returns the number of bytes that all copies may take at a time.
    pub const fn capacity(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of bytes that are taken, in whole MiB.
    pub fn taken(&self) -> u64 {
        let free = self.permits.available_permits() as u64;
        (permits(self.bytes) as u64).saturating_sub(free) * PERMIT_BYTES
    }

    /// Returns the limit of one copy.
    pub(crate) const fn limit(&self) -> NamedLimit {
        NamedLimit::new("downloadBytes", self.bytes / SHARE)
    }

    /// Waits for space in the order of the requests, and takes it.
    ///
    /// # Errors
    /// [`LimitExceeded`] for a copy that may never take so much. `place` names it.
    pub(crate) async fn take(
        &self,
        bytes: u64,
        place: impl Fn() -> String,
    ) -> Result<OwnedSemaphorePermit, LimitExceeded> {
        self.limit().check(bytes, place)?;
        let permits = u32::try_from(permits(bytes)).unwrap_or(u32::MAX);
        let taken = Arc::clone(&self.permits).acquire_many_owned(permits).await;
        Ok(taken.expect("the semaphore is never closed"))
    }
}

/// Gives back what a copy of this size does not need of its space.
pub(crate) fn give_back(space: &mut OwnedSemaphorePermit, bytes: u64) {
    let unused = space.num_permits().saturating_sub(permits(bytes));
    drop(space.split(unused));
}

/// Returns the number of permits of a copy or of a space.
fn permits(bytes: u64) -> usize {
    let permits = usize::try_from(bytes / PERMIT_BYTES).unwrap_or(usize::MAX);
    permits.clamp(1, Semaphore::MAX_PERMITS)
}

impl Default for DownloadSpace {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}
