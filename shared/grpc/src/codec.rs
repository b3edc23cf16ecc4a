//! Finished messages as tonic sends them.

use std::{
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::{BufMut, Bytes};
use prost::Message;
use tokio::sync::OwnedSemaphorePermit;
use tonic::{
    Status,
    codec::{Codec, EncodeBuf, Encoder},
};
use tonic_prost::{ProstCodec, ProstDecoder};

/// Encoded message, with the memory that it takes of all calls.
pub(crate) struct FinishedMessage {
    pub(crate) bytes: Bytes,
    pub(crate) memory: Option<OwnedSemaphorePermit>,
}

/// Codec of one call, whose answer is finished messages.
pub(crate) struct FinishedCodec<Req> {
    pub(crate) buffered: BufferedMemory,
    pub(crate) request: PhantomData<fn() -> Req>,
}

/// Memory of the messages that are in tonic's buffer.
#[derive(Clone, Default)]
pub(crate) struct BufferedMemory(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

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

    fn encode(&mut self, message: FinishedMessage, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message.bytes);
        if let Some(memory) = message.memory {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match held.as_mut() {
                Some(before) => before.merge(memory),
                None => *held = Some(memory),
            }
        }
        Ok(())
    }
}

impl BufferedMemory {
    /// Returns a frame of the buffer that gives the memory of its messages back when it was sent.
    pub(crate) fn hold(&self, bytes: Bytes) -> Bytes {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match memory {
            Some(_memory) => Bytes::from_owner(HeldBytes { bytes, _memory }),
            None => bytes,
        }
    }
}

/// Bytes whose memory counts until they are dropped.
struct HeldBytes {
    bytes: Bytes,
    _memory: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
