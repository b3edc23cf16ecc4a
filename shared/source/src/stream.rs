//! Bytes between async fetches and blocking threads.

use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes};
use tokio::sync::mpsc::Receiver;
use work::Budget;

use crate::error::Error;

/// Chunks between a fetch and its scan or file. A few keep both busy; each may have some hundred KiB.
pub(crate) const CHUNKS_AHEAD: usize = 4;

/// Runs `read` on a blocking thread. It ends by itself, as what reads a file or a channel does.
pub(crate) async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    bounded(&Budget::default(), read).await
}

/// Runs `read` on a blocking thread. If the future is dropped, `budget` is stopped.
pub(crate) async fn bounded<T, E>(
    budget: &Budget,
    read: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Error>
where
    T: Send + 'static,
    E: Into<Error> + Send + 'static,
{
    let done = work::run(budget.clone(), read).await;
    done.map_err(Error::Task)?.map_err(Into::into)
}

/// The chunks of a fetch as one stream for a blocking thread. Ends where the fetch ends; the fetch reports its failure.
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

    /// Reads and drops the rest, so that the fetch can verify it.
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
