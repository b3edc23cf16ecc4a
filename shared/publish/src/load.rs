use std::{
    io::{self, Seek, Write},
    path::Path,
};

use model::{Content, Hasher, Kind, ShardRef, decode_zstd_to};
use store::{ObjectError, ReadError, Store, read_object};
use tempfile::{SpooledTempFile, spooled_tempfile_in};

/// Largest size of lines that are kept in memory, in bytes. Few packages are larger, and one of them may have hundreds of megabytes.
const SPOOL_BYTES: usize = 8 << 20;

/// Lines of a Shard that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The object is missing or damaged, or the store fails.
    #[error("a shard cannot be read")]
    Object(#[from] ObjectError),
    /// The object is intact, and does not decode to the lines that the Snapshot records.
    #[error("{key} does not decode to the lines that the snapshot records")]
    Content {
        /// Key of the shard, a path in the store.
        key: String,
    },
    /// The temporary file for the lines cannot be written.
    #[error("the temporary file for a package cannot be written")]
    Spool(#[source] io::Error),
}

impl From<ReadError> for ShardError {
    fn from(error: ReadError) -> Self {
        Self::Object(error.into())
    }
}

/// Returns the lines of a Shard, after a check of the stored bytes against the key and of the lines against the Snapshot.
///
/// # Errors
/// [`ShardError`].
pub async fn load_verified(store: &dyn Store, shard: &ShardRef) -> Result<Vec<u8>, ShardError> {
    decode_verified(store, shard, Vec::new()).await
}

/// Opens the lines of a Shard after the same checks, for those that need not fit into memory: lines of more than 8 MiB go to an
/// unnamed temporary file in `dir`.
///
/// # Errors
/// [`ShardError`].
pub async fn open_verified(store: &dyn Store, shard: &ShardRef, dir: &Path) -> Result<SpooledTempFile, ShardError> {
    let mut lines = decode_verified(store, shard, spooled_tempfile_in(SPOOL_BYTES, dir)).await?;
    lines.rewind().map_err(ShardError::Spool)?;
    Ok(lines)
}

async fn decode_verified<W: Write>(store: &dyn Store, shard: &ShardRef, sink: W) -> Result<W, ShardError> {
    let object = shard.stored.with_kind(Kind::Package);
    let stored = read_object(store, &object).await?;
    let mut checked = CheckedLines {
        sink,
        hasher: Hasher::new(),
        error: None,
    };
    let decoded = decode_zstd_to(&stored, shard.lines.size, &mut checked);
    if let Some(error) = checked.error {
        return Err(ShardError::Spool(error));
    }
    let found = decoded.map(|size| Content {
        sha256: checked.hasher.finish(),
        size,
    });
    match found.is_ok_and(|found| found == shard.lines) {
        true => Ok(checked.sink),
        false => Err(ShardError::Content {
            key: object.key().to_string(),
        }),
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use model::ObjectDigest;
    use store::Condition;
    use storekit::MemoryStore;

    use super::*;

    const LINES: &[u8] = b"{\"schema\":\"olm.package\"}\n";

    async fn load(stored: &[u8], lines: &[u8]) -> Result<Vec<u8>, ShardError> {
        let (store, shard) = stored_shard(stored, lines).await;
        load_verified(&store, &shard).await
    }

    async fn stored_shard(stored: &[u8], lines: &[u8]) -> (MemoryStore, ShardRef) {
        let store = MemoryStore::default();
        let shard = ShardRef {
            name: "p".into(),
            stored: ObjectDigest::of(stored),
            lines: Content::of(lines),
            metas: 1,
        };
        let key = shard.stored.with_kind(Kind::Package).key();
        let put = store.put(&key, stored.to_vec().into(), Condition::Always);
        put.await.unwrap();
        (store, shard)
    }

    #[tokio::test]
    async fn load_verified_returns_only_the_recorded_lines() {
        let frame = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
        assert_eq!(load(&frame(LINES), LINES).await.unwrap(), LINES);
        for wrong in [&frame(b"{}\n"), &frame(&LINES.repeat(2)), &b"no zstd".to_vec()] {
            let error = load(wrong, LINES).await.unwrap_err();
            assert!(matches!(error, ShardError::Content { .. }), "{error}");
        }
    }

    #[tokio::test]
    async fn open_verified_keeps_large_lines_in_a_file() {
        let lines = LINES.repeat(SPOOL_BYTES / LINES.len() + 1);
        let stored = zstd::bulk::compress(&lines, 1).unwrap();
        let (store, shard) = stored_shard(&stored, &lines).await;
        let dir = tempfile::tempdir().unwrap();
        let mut opened = open_verified(&store, &shard, dir.path()).await.unwrap();
        assert!(opened.is_rolled());
        let mut read = Vec::new();
        opened.read_to_end(&mut read).unwrap();
        assert!(read == lines);
        let error = open_verified(&store, &shard, &dir.path().join("none"))
            .await
            .unwrap_err();
        assert!(matches!(error, ShardError::Spool(_)), "{error}");
    }
}
