use layout::{Key, Sha256, ShardRef};
use store::{ReadError, Store, StoreExt};

/// Why the lines of a Shard cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The store has no such object, or cannot read it.
    #[error("a shard cannot be read")]
    Read(#[from] ReadError),
    /// It does not decompress, or to something else than its name says.
    #[error("{key} does not hold what its name says")]
    Damaged {
        /// The object's key.
        key: String,
    },
}

/// What zstd may add to bytes that do not compress, far more than it does.
const SLACK: u64 = 1 << 20;

/// The lines of a Shard, whole and checked against its name.
///
/// # Errors
/// [`ShardError`] if there are none, or others.
pub async fn read_shard(store: &dyn Store, shard: &ShardRef) -> Result<Vec<u8>, ShardError> {
    let key = Key::Shard(shard.sha256);
    // Another compressor may have made other bytes of the same content, so the recorded size is no limit.
    let most = shard.stored.size.max(shard.size).saturating_add(SLACK);
    let (stored, _) = store.read_all(&key, most).await?;
    let damaged = || ShardError::Damaged { key: key.to_string() };
    let capacity = usize::try_from(shard.size).map_err(|_| damaged())?;
    let lines = zstd::bulk::decompress(&stored, capacity).map_err(|_| damaged())?;
    match Sha256::of(&lines) == shard.sha256 {
        true => Ok(lines),
        false => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use layout::Stored;
    use store::{Condition, MemoryStore};

    use super::*;

    const LINES: &[u8] = b"{\"schema\":\"olm.package\"}\n";

    async fn read(stored: &[u8]) -> Result<Vec<u8>, ShardError> {
        let store = MemoryStore::default();
        let shard = ShardRef {
            name: "p".into(),
            sha256: Sha256::of(LINES),
            size: LINES.len() as u64,
            metas: 1,
            stored: Stored {
                size: 1,
                sha256: Sha256::of(b"another compressor's"),
            },
        };
        let key = Key::Shard(shard.sha256);
        store
            .put(&key, stored.to_vec().into(), Condition::Always)
            .await
            .unwrap();
        read_shard(&store, &shard).await
    }

    #[tokio::test]
    async fn only_what_the_name_says_is_read() {
        let frame = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
        assert_eq!(read(&frame(LINES)).await.unwrap(), LINES);
        for wrong in [&frame(b"{}\n"), &frame(&LINES.repeat(2)), &b"no zstd".to_vec()] {
            assert!(matches!(read(wrong).await, Err(ShardError::Damaged { .. })));
        }
    }
}
