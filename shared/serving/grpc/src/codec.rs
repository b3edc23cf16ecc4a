//! Finished messages as tonic sends them, and the memory that they take: clients may take them
//! slowly.

use std::{marker::PhantomData, sync::Arc};

use bytes::{BufMut, Bytes};
use parking_lot::Mutex;
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic_prost::{ProstCodec, ProstDecoder};
use work::HeldMemory;

/// Encoded message, with the memory that it takes.
pub(crate) struct FinishedMessage {
    pub(crate) bytes: Bytes,
    pub(crate) memory: Option<HeldMemory>,
}

/// Codec of one call, whose answer is finished messages.
#[derive(Default)]
pub(crate) struct FinishedCodec<Req> {
    pub(crate) buffered: BufferedMemory,
    request: PhantomData<fn() -> Req>,
}

/// Memory of the messages that are in tonic's buffer.
#[derive(Clone, Default)]
pub(crate) struct BufferedMemory(Arc<Mutex<Option<HeldMemory>>>);

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
        let mut buffered = self.0.lock();
        match (&mut *buffered, message.memory) {
            (Some(buffered), Some(memory)) => buffered.add(memory),
            (None, memory) => *buffered = memory,
            (Some(_), None) => {}
        }
        Ok(())
    }
}

impl BufferedMemory {
    /// Returns a frame of the buffer that gives the memory of its messages back when it was sent.
    pub(crate) fn hold(&self, bytes: Bytes) -> Bytes {
        match self.0.lock().take() {
            Some(memory) => Arc::new(memory).hold(bytes),
            None => bytes,
        }
    }
}
