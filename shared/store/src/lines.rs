//! Lines of a Shard, compared with what the Snapshot records.

use std::io::{self, Write};

use model::{Content, Hasher, Kind, ShardRef, decode_zstd_to};

use crate::{ObjectError, ReadError, Store, read_object};

/// Lines of a Shard that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The object is missing or damaged, or the store fails.
    #[error("a shard cannot be read")]
    Object(#[from] ObjectError),
    /// The object is intact, and does not decode to the lines that the Snapshot records.
    #[error("{key} does not decode to the lines that the snapshot records")]
    Content {
        /// Key of the shard, a path in the store.
        key: String,
    },
    /// The destination of the lines cannot be written.
    #[error("the lines of a package cannot be written")]
    Sink(#[source] io::Error),
}

impl From<ReadError> for LinesError {
    fn from(error: ReadError) -> Self {
        Self::Object(error.into())
    }
}

/// Writes the lines of a Shard to `sink`, after a check of the stored bytes against the key, and checks the lines against the Snapshot.
/// If they are wrong, `sink` has got some of them.
///
/// # Errors
/// [`LinesError`].
pub async fn read_lines<W: Write>(store: &dyn Store, shard: &ShardRef, sink: W) -> Result<W, LinesError> {
    let object = shard.stored.with_kind(Kind::Package);
    let stored = read_object(store, &object).await?;
    let mut checked = CheckedLines {
        sink,
        hasher: Hasher::new(),
        error: None,
    };
    let decoded = decode_zstd_to(&stored, shard.lines.size, &mut checked);
    if let Some(error) = checked.error {
        return Err(LinesError::Sink(error));
    }
    let found = decoded.map(|size| Content {
        sha256: checked.hasher.finish(),
        size,
    });
    if found.is_ok_and(|found| found == shard.lines) {
        Ok(checked.sink)
    } else {
        Err(LinesError::Content {
            key: object.key().to_string(),
        })
    }
}

/// Hashes lines on their way, and keeps the errors of their destination apart from those of the frame.
struct CheckedLines<W> {
    sink: W,
    hasher: Hasher,
    error: Option<io::Error>,
}

impl<W: Write> Write for CheckedLines<W> {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.sink.write_all(lines) {
            let kind = error.kind();
            self.error = Some(error);
            return Err(kind.into());
        }
        self.hasher.update(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
