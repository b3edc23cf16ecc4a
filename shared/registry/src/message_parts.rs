use bytes::{BufMut, Bytes, BytesMut};
use prost::{
    DecodeError, Message,
    encoding::{self, WireType},
};

/// Length up to which a part is joined with its neighbours, in bytes.
const JOINED_MAX: usize = 16 << 10;

/// Encoded message in parts, so that a text of megabytes needs no memory in one piece, and two fields can share one text.
#[derive(Debug, Default)]
pub struct MessageParts {
    parts: Vec<Bytes>,
    /// The last part, which may grow.
    tail: BytesMut,
    length: usize,
}

impl MessageParts {
    /// Encodes a message in one part.
    pub fn of(message: &impl Message) -> Self {
        let mut parts = Self::default();
        parts.push(message);
        parts
    }

    /// Appends the fields of a message.
    pub(crate) fn push(&mut self, message: &impl Message) {
        let length = message.encoded_len();
        self.tail.reserve(length);
        message.encode_raw(&mut self.tail);
        self.length += length;
    }

    /// Appends a field with a text.
    pub(crate) fn push_text(&mut self, tag: u32, text: &[Bytes]) {
        let before = self.tail.len();
        encoding::encode_key(tag, WireType::LengthDelimited, &mut self.tail);
        encoding::encode_varint(text.iter().map(|part| part.len() as u64).sum(), &mut self.tail);
        self.length += self.tail.len() - before;
        for part in text {
            self.length += part.len();
            if part.len() <= JOINED_MAX {
                self.tail.put_slice(part);
            } else {
                self.parts.push(self.tail.split().freeze());
                self.parts.push(part.clone());
            }
        }
    }

    /// Returns the length of the message in bytes.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns the parts. Some may be empty.
    pub fn into_parts(mut self) -> Vec<Bytes> {
        self.parts.push(self.tail.freeze());
        self.parts
    }

    /// Decodes the message.
    ///
    /// # Errors
    /// Fails if it is a message of another type.
    pub fn decode<M: Message + Default>(self) -> Result<M, DecodeError> {
        M::decode(Bytes::from(self.into_parts().concat()))
    }
}
