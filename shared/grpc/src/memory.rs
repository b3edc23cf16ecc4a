//! Memory for the messages of bundles, which clients may take slowly.

use std::{
    num::NonZero,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tonic::Status;

/// Memory for all messages with content that are being sent, in kB: those of 16 clients that ask for the largest bundles.
const MEMORY_KB: u32 = 32 << 10;

/// Maximum time that a call waits for memory. A client that takes nothing is cut off after half a minute.
const WAIT: Duration = Duration::from_secs(10);

/// Memory that all calls share.
#[derive(Debug, Clone)]
pub(crate) struct MessageMemory {
    sent: Arc<Semaphore>,
    /// Turns of large bundles that are being decompressed, one for each processor.
    made: Arc<Semaphore>,
}

/// Memory of one call.
#[derive(Debug, Clone)]
pub(crate) struct CallMemory {
    all: MessageMemory,
    /// Memory of messages that are not in the body of the answer yet.
    held: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Default for MessageMemory {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            sent: Arc::new(Semaphore::new(MEMORY_KB as usize)),
            made: Arc::new(Semaphore::new(processors)),
        }
    }
}

impl MessageMemory {
    pub(crate) fn call(&self) -> CallMemory {
        CallMemory {
            all: self.clone(),
            held: Arc::default(),
        }
    }
}

impl CallMemory {
    /// Takes memory for the next message, and returns false if there is none at the moment. A message above all memory takes all.
    pub(crate) fn try_reserve(&self, bytes: u64) -> bool {
        let permit = Arc::clone(&self.all.sent).try_acquire_many_owned(kilobytes(bytes));
        permit.map(|permit| self.keep(permit)).is_ok()
    }

    /// Waits until there is memory for the next message.
    pub(crate) async fn reserve(&self, bytes: u64) -> Result<(), Status> {
        // With what this call has, it would wait for itself.
        drop(locked(&self.held).take());
        let permit = Arc::clone(&self.all.sent).acquire_many_owned(kilobytes(bytes));
        let permit = timeout(WAIT, permit)
            .await
            .map_err(|_| Status::resource_exhausted("too many bundles are being sent; try again later"))?
            .map_err(|error| Status::internal(error.to_string()))?;
        self.keep(permit);
        Ok(())
    }

    fn keep(&self, permit: OwnedSemaphorePermit) {
        let mut held = locked(&self.held);
        match held.as_mut() {
            // The message before is not in the body yet.
            Some(before) => before.merge(permit),
            None => *held = Some(permit),
        }
    }

    /// Waits for the turn to decompress a large message, which ends with the permit. No client can prolong it.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.all.made).acquire_owned().await.ok()
    }

    /// Returns the memory of the next message, which is given back with the last of its parts.
    pub(crate) fn of_message(&self) -> MessagePermit {
        MessagePermit(locked(&self.held).take().map(Arc::new))
    }
}

/// Memory of one message.
#[derive(Default)]
pub(crate) struct MessagePermit(Option<Arc<OwnedSemaphorePermit>>);

impl MessagePermit {
    /// Returns a part that keeps the memory of its message until it is sent.
    pub(crate) fn hold(&self, part: Bytes) -> Bytes {
        match self.0.clone() {
            Some(_permit) => Bytes::from_owner(HeldBytes { bytes: part, _permit }),
            None => part,
        }
    }
}

fn kilobytes(bytes: u64) -> u32 {
    let kilobytes = u32::try_from(bytes.div_ceil(1 << 10));
    kilobytes.unwrap_or(u32::MAX).clamp(1, MEMORY_KB)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes whose memory counts until they are dropped.
struct HeldBytes {
    bytes: Bytes,
    _permit: Arc<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reserve_waits_for_memory_and_gives_up() {
        let memory = MessageMemory::default();
        let first = memory.call();
        // More than there is counts as all.
        first.reserve(u64::MAX).await.unwrap();
        let second = memory.call();
        assert!(!second.try_reserve(1));
        let error = second.reserve(1).await.unwrap_err();
        assert_eq!(error.code(), tonic::Code::ResourceExhausted);
        drop(first);
        assert!(second.try_reserve(1) && second.try_reserve(1 << 20));
        assert_eq!(memory.sent.available_permits(), MEMORY_KB as usize - 1025);
        drop(second);
        assert_eq!(memory.sent.available_permits(), MEMORY_KB as usize);
    }
}
