use std::io::{self, Write};

use catalog_mirror_store::{Condition, LinesError, Store, read_lines};
use model::{Content, Kind, ObjectDigest, ShardRef};
use storekit::MemoryStore;

const LINES: &[u8] = b"{\"schema\":\"olm.package\"}\n";

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

fn frame(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

#[tokio::test]
async fn read_lines_returns_only_the_recorded_lines() {
    let (store, shard) = stored_shard(&frame(LINES), LINES).await;
    assert_eq!(read_lines(&store, &shard, Vec::new()).await.unwrap(), LINES);
    for wrong in [frame(b"{}\n"), frame(&LINES.repeat(2)), b"no zstd".to_vec()] {
        let (store, shard) = stored_shard(&wrong, LINES).await;
        let error = read_lines(&store, &shard, Vec::new()).await.unwrap_err();
        assert!(matches!(error, LinesError::Content { .. }), "{error}");
    }
}

struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn read_lines_tells_a_full_disk_from_a_damaged_shard() {
    let (store, shard) = stored_shard(&frame(LINES), LINES).await;
    let error = read_lines(&store, &shard, FullDisk).await.err().unwrap();
    assert!(matches!(error, LinesError::Sink(_)), "{error}");
}
