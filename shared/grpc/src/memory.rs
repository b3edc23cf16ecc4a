//! Memory for the messages of bundles, which clients may take slowly.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::AnswerError;

/// Memory for all messages with content that are being sent, in kB: those of 16 clients that ask for the largest bundles.
const MEMORY_KB: u32 = 32 << 10;

/// Maximum time that a call waits for memory. A client that takes nothing is cut off after half a minute.
const WAIT: Duration = Duration::from_secs(10);

/// Memory that all calls share.
#[derive(Debug, Clone)]
pub(crate) struct MessageMemory(Arc<Semaphore>);

impl Default for MessageMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MEMORY_KB as usize)))
    }
}

impl MessageMemory {
    /// Waits until there is memory for a message. A message above all memory takes all.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<OwnedSemaphorePermit, AnswerError> {
        let kilobytes = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).acquire_many_owned(kilobytes.clamp(1, MEMORY_KB));
        let permit = timeout(WAIT, permit).await.map_err(|_| AnswerError::Memory)?;
        permit.map_err(|_| AnswerError::Memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reserve_waits_for_memory_and_gives_up() {
        let memory = MessageMemory::default();
        // More than there is counts as all.
        let first = memory.reserve(u64::MAX).await.unwrap();
        assert_eq!(memory.reserve(1).await.unwrap_err(), AnswerError::Memory);
        drop(first);
        let second = [memory.reserve(1).await.unwrap(), memory.reserve(1 << 20).await.unwrap()];
        assert_eq!(memory.0.available_permits(), MEMORY_KB as usize - 1025);
        drop(second);
        assert_eq!(memory.0.available_permits(), MEMORY_KB as usize);
    }
}
