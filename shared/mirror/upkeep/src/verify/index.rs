//! Compares indexes, and the names and counts of Snapshots, with the lines that they describe.

use std::collections::{BTreeMap, HashMap};

use model::text::chain;
use model::{Content, Index, IndexedMeta, Key, Kind, ManifestEntry, ObjectRef, Sha256, Snapshot};
use render::index_lines;
use store::{ReadError, Store, StoreError, read_object, read_stored};
use work::{Budget, run};

use super::ObjectProblem;

/// Facts about Shards that Snapshots and their indexes record, by the lines that they describe.
#[derive(Default)]
pub(super) struct IndexedLines {
    /// Objects that the Snapshots name.
    pub(super) objects: BTreeMap<Key, ManifestEntry>,
    shards: HashMap<Sha256, Vec<RecordedShard>>,
    /// Problems that were found, by the key of the document that is wrong or cannot be checked.
    pub(super) wrong: BTreeMap<Key, ObjectProblem>,
    /// Budget for reading all lines of the catalog.
    budget: Budget,
}

/// Facts about one Shard. Readers list and search names and counts without the lines.
struct RecordedShard {
    snapshot: Key,
    name: String,
    metas: u64,
    /// Index, and the hash of its entry: an index may have megabytes. `None` if it cannot be read.
    index: Option<(Key, Sha256)>,
}

impl IndexedLines {
    /// Takes the objects and entries of a Snapshot and the entries of its index. An index that
    /// cannot be read is found by the check of all objects.
    pub(super) async fn add(
        &mut self,
        store: &dyn Store,
        key: &Key,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError> {
        let objects = snapshot.objects().into_iter();
        self.objects
            .extend(objects.map(|entry| (entry.key(), entry)));
        let of_index = snapshot.index.with_kind(Kind::Index).key();
        let index = match read_stored::<Index<'_>>(store, &snapshot.index).await {
            Ok(index) => Some(index),
            Err(ReadError::Store(error)) if !error.is_not_found() => return Err(error),
            Err(_) => None,
        };
        if index
            .as_ref()
            .is_some_and(|index| !index.describes(snapshot))
        {
            self.wrong
                .insert(of_index.clone(), ObjectProblem::Disagrees("its snapshot"));
        }
        let described = index.iter().flat_map(|index| &index.shards);
        let entries: HashMap<Sha256, Sha256> = described
            .map(|shard| (shard.lines, hash(&shard.metas)))
            .collect();
        for shard in snapshot.shards() {
            let entry = entries.get(&shard.lines.sha256);
            let recorded = RecordedShard {
                snapshot: key.clone(),
                name: shard.name.clone(),
                metas: shard.metas,
                index: entry.map(|metas| (of_index.clone(), *metas)),
            };
            self.shards
                .entry(shard.lines.sha256)
                .or_default()
                .push(recorded);
        }
        Ok(())
    }

    /// Compares the facts with the lines of one Shard, whose bytes were checked before.
    pub(super) async fn check(
        &mut self,
        store: &dyn Store,
        shard: &ObjectRef,
        lines: Content,
    ) -> Result<(), StoreError> {
        let Some(recorded) = self.shards.remove(&lines.sha256) else {
            return Ok(());
        };
        let size = usize::try_from(lines.size).unwrap_or(usize::MAX);
        if let Err(over) = self.budget.charge_bytes(size) {
            // Unread lines say nothing about the entries.
            self.wrong
                .insert(shard.key(), ObjectProblem::Document(chain(&over)));
            return Ok(());
        }
        let bytes = match read_object(store, shard).await {
            Ok(bytes) => bytes,
            Err(ReadError::Store(error)) => return Err(error),
            Err(_) => return Ok(()),
        };
        let read = run(self.budget.clone(), move || {
            index_lines(zstd::Decoder::with_buffer(&bytes[..]).ok()?, lines)
        });
        let found = read.await.ok().flatten().unwrap_or_default();
        let package = IndexedMeta::package_of_all(&found);
        let entry = hash(&found);
        for shard in recorded {
            if package != Some(&*shard.name) || found.len() as u64 != shard.metas {
                let problem = ObjectProblem::Disagrees("the lines of its shards");
                self.wrong.insert(shard.snapshot, problem);
            }
            if let Some((index, _)) = shard.index.filter(|(_, metas)| *metas != entry) {
                let problem = ObjectProblem::Disagrees("the lines that it describes");
                self.wrong.insert(index, problem);
            }
        }
        Ok(())
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
    async fn check(steps: u64) -> Vec<(Key, ObjectProblem)> {
        let long = "x".repeat(1000);
        let lines = format!("{{\"name\":\"db\",\"schema\":\"olm.package\",\"x\":\"{long}\"}}\n");
        let built = SnapshotBuilder::new().package("db", &lines).build();
        let store = MemoryStore::new();
        for (key, bytes) in built.objects {
            store
                .put(&key, bytes, store::Condition::Always)
                .await
                .unwrap();
        }
        let mut indexed = IndexedLines {
            budget: Budget::new(steps, MemoryPool::default()),
            ..IndexedLines::default()
        };
        let snapshot = built.snapshot.index.with_kind(Kind::Snapshot);
        indexed
            .add(&store, &snapshot.key(), &built.snapshot)
            .await
            .unwrap();
        let shard = &built.snapshot.packages[0];
        let object = shard.stored.with_kind(Kind::Package);
        indexed.check(&store, &object, shard.lines).await.unwrap();
        indexed.wrong.into_iter().collect()
    }

    #[tokio::test]
    async fn check_beyond_its_budget_names_the_shard_and_the_limit() {
        assert_eq!(check(1000).await, []);
        let found = check(10).await;
        assert_eq!(found.len(), 1);
        assert!(matches!(found[0].0, Key::Object(Kind::Package, _)));
        assert_eq!(
            found[0].1.to_string(),
            "cannot be used: exceeds the limit steps of 10"
        );
    }
}
