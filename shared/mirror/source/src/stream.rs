//! Bytes between async fetches and blocking threads, and the time for both.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::timeout;
use tokio_util::io::{StreamReader, SyncIoBridge};
use work::Budget;

use crate::Error;

/// Chunks between a fetch and its scan or file. A few keep both busy; each may have some hundred
/// KiB.
pub(crate) const CHUNKS_AHEAD: usize = 4;

/// Runs `read` on a blocking thread. It ends by itself, as what reads a file or a channel does.
pub(crate) async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    bounded(&Budget::default(), read).await
}

/// Runs `read` on a blocking thread. If the future is dropped, `budget` is stopped.
pub(crate) async fn bounded<T: Send + 'static, E: Into<Error> + Send + 'static>(
    budget: &Budget,
    read: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Error> {
    let done = work::run(budget.clone(), read).await;
    done.map_err(Error::Task)?.map_err(Into::into)
}

/// Waits for an answer, for at most `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    asking: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(limit, asking)
        .await
        .map_err(|_| Error::Timeout(limit))?
}

/// Writes the chunks that `fetch` sends to a file, whose path errors name.
pub(crate) async fn write_chunks<T, F: Future<Output = Result<T, Error>>>(
    mut file: File,
    path: PathBuf,
    fetch: impl FnOnce(Sender<Bytes>) -> F,
) -> Result<T, Error> {
    let (to, mut from) = mpsc::channel::<Bytes>(CHUNKS_AHEAD);
    let writing = blocking(move || {
        while let Some(chunk) = from.blocking_recv() {
            file.write_all(&chunk).map_err(Error::writing(&path))?;
        }
        Ok(())
    });
    let (fetched, written) = tokio::join!(fetch(to), writing);
    // A fetch whose receiver is gone was given up, so a full disk is named first.
    written?;
    fetched
}

/// Returns the chunks of a fetch as one stream for a blocking thread. It ends where the fetch ends;
/// the fetch reports its failure. Call it within the runtime.
pub(crate) fn reader_of(mut chunks: Receiver<Bytes>) -> impl BufRead + Send {
    let chunks = stream::poll_fn(move |context| chunks.poll_recv(context));
    SyncIoBridge::new(StreamReader::new(chunks.map(Ok::<_, io::Error>)))
}
