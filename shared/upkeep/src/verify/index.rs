//! Compares indexes, and the names and counts of Snapshots, with the lines that they describe.

use std::collections::{BTreeMap, HashMap};

use model::{Content, Index, IndexedMeta, Key, Kind, ObjectRef, Sha256, Snapshot};
use render::index_lines;
use store::{ObjectError, ReadError, Store, StoreError, read_object, read_stored};

use super::{Finding, ObjectProblem};

/// The entries of all indexes and Snapshots, by the lines that they describe. Of an index, only hashes are held: an index may have megabytes.
#[derive(Default)]
pub(super) struct IndexedLines {
    entries: HashMap<Sha256, Vec<IndexEntry>>,
    shards: HashMap<Sha256, Vec<RecordedShard>>,
    wrong: BTreeMap<Key, ObjectProblem>,
}

struct IndexEntry {
    index: Key,
    metas: Sha256,
}

/// Name and count of a Shard, as a Snapshot records them. Readers list and search them without the lines.
struct RecordedShard {
    snapshot: Key,
    name: String,
    metas: u64,
}

impl IndexedLines {
    /// Takes the entries of a Snapshot and of its index. An index that cannot be read is found by the check of all objects.
    pub(super) async fn add(
        &mut self,
        store: &dyn Store,
        object: &ObjectRef,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError> {
        for shard in snapshot.shards() {
            let recorded = RecordedShard {
                snapshot: object.key(),
                name: shard.name.clone(),
                metas: shard.metas,
            };
            self.shards.entry(shard.lines.sha256).or_default().push(recorded);
        }
        let key = snapshot.index.with_kind(Kind::Index).key();
        let index = match read_stored::<Index>(store, &snapshot.index).await {
            Ok(index) => index,
            Err(ObjectError::Read(ReadError::Store(error))) if !error.is_not_found() => return Err(error),
            Err(_) => return Ok(()),
        };
        let described = index.shards.iter().map(|shard| shard.lines);
        if !described.eq(snapshot.shards().map(|shard| shard.lines.sha256)) {
            self.wrong.insert(key.clone(), ObjectProblem::Disagrees("its snapshot"));
        }
        for shard in index.shards {
            let entry = IndexEntry {
                index: key.clone(),
                metas: hash(&shard.metas),
            };
            self.entries.entry(shard.lines).or_default().push(entry);
        }
        Ok(())
    }

    /// Compares the entries with the lines of one Shard, whose bytes were checked before.
    pub(super) async fn check(
        &mut self,
        store: &dyn Store,
        shard: &ObjectRef,
        lines: Content,
    ) -> Result<(), StoreError> {
        let entries = self.entries.remove(&lines.sha256).unwrap_or_default();
        let recorded = self.shards.remove(&lines.sha256).unwrap_or_default();
        if entries.is_empty() && recorded.is_empty() {
            return Ok(());
        }
        let bytes = match read_object(store, shard).await {
            Ok(bytes) => bytes,
            Err(ObjectError::Read(ReadError::Store(error))) => return Err(error),
            Err(_) => return Ok(()),
        };
        let metas = tokio::task::spawn_blocking(move || read_metas(&bytes, lines)).await;
        let found = metas.ok().flatten();
        for shard in recorded {
            let name = found.as_ref().map(|found| found.package.as_deref());
            if name != Some(Some(&shard.name)) || found.as_ref().map(|found| found.count) != Some(shard.metas) {
                let problem = ObjectProblem::Disagrees("the lines of its shards");
                self.wrong.insert(shard.snapshot, problem);
            }
        }
        for entry in entries {
            if found.as_ref().map(|found| found.metas) != Some(entry.metas) {
                let problem = ObjectProblem::Disagrees("the lines that it describes");
                self.wrong.insert(entry.index, problem);
            }
        }
        Ok(())
    }

    pub(super) fn findings(self) -> impl Iterator<Item = Finding> {
        self.wrong.into_iter().map(|(key, problem)| Finding { key, problem })
    }
}

/// The facts about the lines of a Shard that documents record.
struct LineFacts {
    /// Hash of the entry that an index must have.
    metas: Sha256,
    count: u64,
    package: Option<String>,
}

fn read_metas(stored: &[u8], lines: Content) -> Option<LineFacts> {
    let decoder = zstd::Decoder::with_buffer(stored).ok()?;
    let metas = index_lines(decoder, lines)?;
    Some(LineFacts {
        metas: hash(&metas),
        count: metas.len() as u64,
        package: IndexedMeta::package_of_all(&metas).map(str::to_owned),
    })
}

fn hash(metas: &[IndexedMeta]) -> Sha256 {
    let json = serde_json::to_vec(metas).expect("names and numbers are JSON");
    Sha256::of(&json)
}
