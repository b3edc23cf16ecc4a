//! Readers between the async fetch and the blocking scanner.

use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes};
use tokio::sync::mpsc::Receiver;

/// The chunks of a fetch as one stream. Ends where the fetch ends, for better or worse:
/// whether all came is for the fetch to say.
pub(crate) struct ChannelReader {
    from: Receiver<Bytes>,
    chunk: Bytes,
}

impl ChannelReader {
    pub(crate) fn new(from: Receiver<Bytes>) -> Self {
        Self {
            from,
            chunk: Bytes::new(),
        }
    }

    /// Lets the rest pass unread, so that the fetch sees its end and can verify it.
    pub(crate) fn drain(&mut self) {
        while self.from.blocking_recv().is_some() {}
    }
}

impl BufRead for ChannelReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.chunk.is_empty() {
            match self.from.blocking_recv() {
                Some(chunk) => self.chunk = chunk,
                None => break,
            }
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, count: usize) {
        self.chunk.advance(count);
    }
}

impl Read for ChannelReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        self.consume(count);
        Ok(count)
    }
}

/// Tells a failure of the content from a failure of whoever reads it: keeps the content's error.
/// A content that ends early is an error too, lest half a file pass for a whole one.
pub(crate) struct Tap<'a> {
    inner: &'a mut dyn Read,
    missing: u64,
    failure: Option<io::Error>,
}

impl<'a> Tap<'a> {
    pub(crate) fn new(inner: &'a mut dyn Read, size: u64) -> Self {
        Self {
            inner,
            missing: size,
            failure: None,
        }
    }

    /// The error the content itself ended with, if any.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    fn fail(&mut self, error: io::Error) -> io::Error {
        let copy = io::Error::new(error.kind(), "the content cannot be read to its end");
        self.failure.get_or_insert(error);
        copy
    }
}

impl Read for Tap<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(0) if self.missing > 0 && !buffer.is_empty() => {
                let missing = format!("{} bytes are missing", self.missing);
                Err(self.fail(io::Error::new(io::ErrorKind::UnexpectedEof, missing)))
            }
            Ok(count) => {
                self.missing = self.missing.saturating_sub(count as u64);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(self.fail(error)),
        }
    }
}
