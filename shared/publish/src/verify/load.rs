use model::{Content, Kind, ShardRef, decode_zstd};
use store::{ObjectError, ReadError, Store, read_object};

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
    let object = shard.stored.with_kind(Kind::Package);
    let stored = read_object(store, &object).await?;
    let content = || ShardError::Content {
        key: object.key().to_string(),
    };
    let lines = decode_zstd(&stored, shard.lines.size).map_err(|_| content())?;
    match Content::of(&lines) == shard.lines {
        true => Ok(lines),
        false => Err(content()),
    }
}

#[cfg(test)]
mod tests {
    use model::ObjectDigest;
    use store::{Condition, MemoryStore};

    use super::*;

    const LINES: &[u8] = b"{\"schema\":\"olm.package\"}\n";

    async fn load(stored: &[u8], lines: &[u8]) -> Result<Vec<u8>, ShardError> {
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
        load_verified(&store, &shard).await
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
}
