//! Streams for the threads that compress, and of files outside of a store.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    ops::Range,
    os::unix::fs::FileExt as _,
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
};

use crate::{Staged, StoreError};

/// Size of the pieces that a writer passes on, in bytes. The encoders write a few hundred bytes at a time, and each piece
/// costs a wake-up of the task that stages it.
const PIECE: usize = 256 << 10;

/// Blocking end of a staged object, for the threads that compress.
pub type StagedWriter = BufWriter<PieceSender>;

/// Passes on each piece that is written.
pub struct PieceSender(mpsc::Sender<Bytes>);

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
    (BufWriter::with_capacity(PIECE, PieceSender(pieces)), staging)
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

/// Size of one read of a file, in bytes. The HTTP client holds about two of them for each put. Larger ones were not faster: a
/// connection takes less at a time.
const CHUNK: u64 = 256 << 10;

/// Reads a range of a file, without moving the offset of the file: several streams can read one file.
#[expect(clippy::disallowed_methods, reason = "only bytes are moved, and nothing is parsed")]
pub fn file_chunks(file: Arc<File>, range: Range<u64>) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync + use<> {
    stream::try_unfold(range.start, move |start| {
        let file = Arc::clone(&file);
        async move {
            if start == range.end {
                return Ok(None);
            }
            let end = range.end.min(start + CHUNK);
            let chunk = spawn_blocking(move || {
                let mut bytes = vec![0; (end - start) as usize];
                file.read_exact_at(&mut bytes, start).map(|()| Bytes::from(bytes))
            });
            Ok(Some((chunk.await??, end)))
        }
    })
}
