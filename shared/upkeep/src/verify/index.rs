//! Compares indexes, and the names and counts of Snapshots, with the lines that they describe.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Read},
};

use model::text::chain;
use model::{Content, Index, IndexedMeta, Key, Kind, ObjectRef, Sha256, Snapshot};
use render::index_lines;
use store::{ObjectError, ReadError, Store, StoreError, read_object, read_stored};
use work::{Budget, run};

use super::{Finding, ObjectProblem};

/// The entries of all indexes and Snapshots, by the lines that they describe. Of an index, only hashes are held: an index may have megabytes.
#[derive(Default)]
pub(super) struct IndexedLines {
    entries: HashMap<Sha256, Vec<IndexEntry>>,
    shards: HashMap<Sha256, Vec<RecordedShard>>,
    wrong: BTreeMap<Key, ObjectProblem>,
    /// Budget for reading all lines of the catalog.
    budget: Budget,
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
        let budget = self.budget.clone();
        let metas = run(self.budget.clone(), move || read_metas(&bytes, lines, budget)).await;
        if let Err(over) = self.budget.charge(0) {
            // Unread lines say nothing about the entries.
            self.wrong.insert(shard.key(), ObjectProblem::Document(chain(&over)));
            return Ok(());
        }
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

fn read_metas(stored: &[u8], lines: Content, budget: Budget) -> Option<LineFacts> {
    let decoder = zstd::Decoder::with_buffer(stored).ok()?;
    let metas = index_lines(ChargedReader { decoder, budget }, lines)?;
    Some(LineFacts {
        metas: hash(&metas),
        count: metas.len() as u64,
        package: IndexedMeta::package_of_all(&metas).map(str::to_owned),
    })
}

/// Decompressed lines, whose reading ends with the budget.
struct ChargedReader<R> {
    decoder: R,
    budget: Budget,
}

impl<R: Read> Read for ChargedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(buffer)?;
        self.budget.charge_bytes(read).map_err(io::Error::other)?;
        Ok(read)
    }
}

fn hash(metas: &[IndexedMeta]) -> Sha256 {
    let json = serde_json::to_vec(metas).expect("names and numbers are JSON");
    Sha256::of(&json)
}

#[cfg(test)]
mod tests {
    use storekit::MemoryStore;
    use testkit::SnapshotBuilder;
    use work::MemoryPool;

    use super::*;

    /// Returns the problems of a catalog of one package whose lines take `steps` steps.
    async fn check(steps: u64) -> Vec<Finding> {
        let lines = format!(
            "{{\"name\":\"db\",\"schema\":\"olm.package\",\"x\":\"{}\"}}\n",
            "x".repeat(1000)
        );
        let built = SnapshotBuilder::new().package("db", &lines).build();
        let store = MemoryStore::new();
        for (key, bytes) in built.objects {
            store.put(&key, bytes, store::Condition::Always).await.unwrap();
        }
        let mut indexed = IndexedLines {
            budget: Budget::new(steps, MemoryPool::default()),
            ..IndexedLines::default()
        };
        let object = ObjectRef {
            kind: Kind::Snapshot,
            ..built.snapshot.index.with_kind(Kind::Index)
        };
        indexed.add(&store, &object, &built.snapshot).await.unwrap();
        let shard = &built.snapshot.packages[0];
        let object = shard.stored.with_kind(Kind::Package);
        indexed.check(&store, &object, shard.lines).await.unwrap();
        indexed.findings().collect()
    }

    #[tokio::test]
    async fn check_beyond_its_budget_names_the_shard_and_the_limit() {
        assert_eq!(check(1000).await, []);
        let found = check(10).await;
        assert_eq!(found.len(), 1);
        assert!(matches!(found[0].key, Key::Object(Kind::Package, _)));
        let problem = found[0].problem.to_string();
        assert_eq!(problem, "cannot be used: exceeds the limit steps of 10");
    }
}
