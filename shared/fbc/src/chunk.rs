use crate::canon::Canon;
use crate::error::Error;
use crate::limits::Limits;
use crate::meta::Meta;
use crate::stream::{Decoder, Mode};

/// Whole documents of one file, to be parsed on any thread.
#[derive(Debug)]
pub struct Chunk {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: Mode,
    /// Documents and lines in the file before this chunk.
    pub(crate) documents: usize,
    pub(crate) lines: usize,
}

impl Chunk {
    /// The bytes that it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Parses the documents and hands their Metas to `sink`, in order.
    ///
    /// # Errors
    /// At the first document that is malformed or beyond a limit.
    pub fn metas(&self, limits: &Limits, sink: &mut dyn FnMut(Meta<'_>)) -> Result<(), Error> {
        let mut decoder = Decoder {
            limits,
            canon: Canon::new(limits.depth),
            documents: self.documents,
            lines: self.lines,
            bytes: &self.bytes,
        };
        decoder.run(self.mode, sink)
    }
}
