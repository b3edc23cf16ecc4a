use std::io::{self, Write};

use bytes::Bytes;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{Staged, StoreError};

/// Size of the pieces that a writer passes on, in bytes. The encoders write a few hundred bytes at a time, and each piece
/// costs a wake-up of the task that stages it.
const PIECE: usize = 256 << 10;

/// Blocking end of a staged object, for the threads that compress.
pub struct StagedWriter {
    buffer: Vec<u8>,
    pieces: mpsc::Sender<Bytes>,
}

/// Task that stages what a [`StagedWriter`] writes.
pub type Staging = JoinHandle<Result<Box<dyn Staged>, StoreError>>;

/// Connects a blocking writer with a staged object. Once the writer is dropped, the task returns the object, ready to commit.
pub fn bridge(mut staged: Box<dyn Staged>) -> (StagedWriter, Staging) {
    // Two pieces: one is compressed while the one before is sent.
    let (pieces, mut received) = mpsc::channel::<Bytes>(2);
    let staging = tokio::spawn(async move {
        while let Some(piece) = received.recv().await {
            staged.write(piece).await?;
        }
        Ok(staged)
    });
    (
        StagedWriter {
            buffer: Vec::with_capacity(PIECE),
            pieces,
        },
        staging,
    )
}

impl StagedWriter {
    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE));
        // The task ended early. Its result has the error.
        self.pieces
            .blocking_send(piece.into())
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

impl Write for StagedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(PIECE - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..length]);
        if self.buffer.len() == PIECE {
            self.send()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.send() }
    }
}
