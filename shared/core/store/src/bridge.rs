//! Streams for the threads that compress.

use std::io::{self, BufWriter, Write};

use bytes::Bytes;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{Staged, StoreError};

/// Size of the pieces that a writer passes on, in bytes. The encoders write a few hundred bytes at
/// a time, and each piece costs a wake-up of the task that stages it.
const PIECE: usize = 256 << 10;

/// Blocking end of a staged object, for the threads that compress.
pub type StagedWriter = BufWriter<PieceSender>;

/// Passes on each piece that is written.
pub struct PieceSender(mpsc::Sender<Bytes>);

/// Task that stages what a [`StagedWriter`] writes.
pub type Staging = JoinHandle<Result<Box<dyn Staged>, StoreError>>;

/// Connects a blocking writer with a staged object. Once the writer is dropped, the task returns
/// the object, ready to commit.
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
        BufWriter::with_capacity(PIECE, PieceSender(pieces)),
        staging,
    )
}

impl Write for PieceSender {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Bytes::copy_from_slice(piece));
        // The task ended early. Its result has the error.
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
