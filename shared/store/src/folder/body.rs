use std::{fs::File, io, ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::task::{JoinHandle, spawn_blocking};

use super::{ReadMode, joined};
use crate::{Body, Operation, StoreError};

/// Size of the first chunk in bytes. It is read when the file is opened; most objects have no second one.
const FIRST: u64 = 64 << 10;

/// Size of the later chunks in bytes: large enough that handing them over costs little, small enough for thousands of slow
/// clients.
const CHUNK: u64 = 256 << 10;

/// Reads the first chunk of a range of a file now, and the others on demand.
pub(super) fn of_file(file: File, key: String, mut range: Range<u64>, mode: ReadMode) -> io::Result<Body> {
    let first = mode.read(&file, take(&mut range, FIRST))?;
    if range.is_empty() {
        return Ok(of_bytes(first));
    }
    let chunks = Chunks {
        file: Arc::new(file),
        key,
        rest: range,
        ahead: None,
    };
    Ok(of_bytes(first).chain(stream::try_unfold(chunks, Chunks::next)).boxed())
}

/// Returns a body of one chunk, or of none for no bytes.
pub(super) fn of_bytes(bytes: Bytes) -> Body {
    stream::iter((!bytes.is_empty()).then_some(Ok(bytes))).boxed()
}

/// Chunks of an open file that are still to come. One is read ahead while the one before is being sent. No thread waits
/// for a slow client: each is borrowed for one chunk.
struct Chunks {
    file: Arc<File>,
    key: String,
    rest: Range<u64>,
    ahead: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Chunks {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, StoreError> {
        let Some(chunk) = self.ahead.take().or_else(|| self.start()) else {
            return Ok(None);
        };
        let chunk = joined(chunk.await).map_err(|source| StoreError::failed(Operation::Get, &self.key, source))?;
        self.ahead = self.start();
        Ok(Some((chunk, self)))
    }

    fn start(&mut self) -> Option<JoinHandle<io::Result<Bytes>>> {
        let range = take(&mut self.rest, CHUNK);
        let file = Arc::clone(&self.file);
        (!range.is_empty()).then(|| spawn_blocking(move || ReadMode::Blocking.read(&file, range)))
    }
}

/// Takes at most `most` bytes off the front of a range.
fn take(range: &mut Range<u64>, most: u64) -> Range<u64> {
    let start = range.start;
    range.start = range.end.min(start + most);
    start..range.start
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use futures_util::TryStreamExt as _;

    use super::*;

    fn file(size: u64) -> (File, Vec<u8>) {
        let content: Vec<u8> = (0..size).map(|at| (at / 7 % 251) as u8).collect();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&content, 0).unwrap();
        (file, content)
    }

    async fn all(body: Body) -> Vec<u8> {
        body.try_collect::<Vec<_>>().await.unwrap().concat()
    }

    #[tokio::test]
    async fn body_chunks_join_to_the_range() {
        let size = FIRST + 2 * CHUNK + 5;
        for range in [
            0..0,
            0..1,
            0..FIRST,
            0..FIRST + 1,
            1..size,
            0..size,
            FIRST..FIRST + CHUNK,
        ] {
            let (file, content) = file(size);
            let expected = &content[range.start as usize..range.end as usize];
            assert!(
                all(of_file(file, "k".into(), range.clone(), ReadMode::Blocking).unwrap()).await == expected,
                "{range:?}"
            );
        }
    }

    #[tokio::test]
    async fn body_of_a_file_that_is_cut_short_fails() {
        let (file, _) = file(FIRST + 10);
        let body = of_file(file.try_clone().unwrap(), "k".into(), 0..FIRST + 10, ReadMode::Blocking).unwrap();
        file.set_len(FIRST + 5).unwrap();
        let error = body.try_collect::<Vec<_>>().await.unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Failed {
                    operation: Operation::Get,
                    ..
                }
            ),
            "{error}"
        );
    }
}
