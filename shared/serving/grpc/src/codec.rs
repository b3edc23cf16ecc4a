//! Finished messages as tonic sends them, and the memory that they take: clients may take them
//! slowly.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use bytes::{BufMut, Bytes};
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tonic::Status;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic_prost::{ProstCodec, ProstDecoder};

use crate::AnswerError;

/// Memory for all messages with content that are being sent, in kB: those of 16 clients that ask
/// for the largest bundles.
const MEMORY_KB: u32 = 32 << 10;

/// Maximum time that a call waits for memory. A client that takes nothing is cut off after half a
/// minute.
const WAIT: Duration = Duration::from_secs(10);

/// Encoded message, with the memory that it takes of all calls.
pub(crate) struct FinishedMessage {
    pub(crate) bytes: Bytes,
    pub(crate) memory: Option<OwnedSemaphorePermit>,
}

/// Codec of one call, whose answer is finished messages.
#[derive(Default)]
pub(crate) struct FinishedCodec<Req> {
    pub(crate) buffered: BufferedMemory,
    request: PhantomData<fn() -> Req>,
}

/// Memory of the messages that are in tonic's buffer.
#[derive(Clone, Default)]
pub(crate) struct BufferedMemory(Arc<Mutex<Vec<OwnedSemaphorePermit>>>);

impl<Req: Message + Default + 'static> Codec for FinishedCodec<Req> {
    type Encode = FinishedMessage;
    type Decode = Req;
    type Encoder = BufferedMemory;
    type Decoder = ProstDecoder<Req>;

    fn encoder(&mut self) -> Self::Encoder {
        self.buffered.clone()
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<Req, Req>::default().decoder()
    }
}

impl Encoder for BufferedMemory {
    type Item = FinishedMessage;
    type Error = Status;

    fn encode(
        &mut self,
        message: FinishedMessage,
        buffer: &mut EncodeBuf<'_>,
    ) -> Result<(), Status> {
        buffer.put(message.bytes);
        self.0.lock().extend(message.memory);
        Ok(())
    }
}

impl BufferedMemory {
    /// Returns a frame of the buffer that gives the memory of its messages back when it was sent.
    pub(crate) fn hold(&self, bytes: Bytes) -> Bytes {
        let memory = std::mem::take(&mut *self.0.lock());
        if memory.is_empty() {
            return bytes;
        }
        Bytes::from_owner(HeldBytes {
            bytes,
            _memory: memory,
        })
    }
}

/// Bytes whose memory counts until they are dropped.
struct HeldBytes {
    bytes: Bytes,
    _memory: Vec<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

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
        let permit = timeout(WAIT, permit)
            .await
            .map_err(|_| AnswerError::Memory)?;
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
        let second = [
            memory.reserve(1).await.unwrap(),
            memory.reserve(1 << 20).await.unwrap(),
        ];
        assert_eq!(memory.0.available_permits(), MEMORY_KB as usize - 1025);
        drop(second);
        assert_eq!(memory.0.available_permits(), MEMORY_KB as usize);
    }
}
