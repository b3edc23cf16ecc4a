use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};
use keep::{Finding, Problem, Verification, verify};
use layout::{CatalogName, Current, Key, Named, Sha256, Snapshot, SnapshotRef};
use store::{Condition, ReadError, StoreError, StoreExt};
use telemetry::chain;

use crate::{Copier, Report, SyncError, plan::Missing};

/// What a repair did.
#[derive(Debug)]
pub struct Repair {
    /// What was found, without what was repaired.
    pub verification: Verification,
    /// The keys of what was repaired.
    pub repaired: Vec<String>,
    /// The keys of what was tried in vain, and why.
    pub failed: Vec<(String, String)>,
}

impl Copier {
    /// Verifies a catalog of the store and fetches from the origin what is missing or damaged: everything that has a
    /// recorded hash, which every byte is checked against. What has none, such as `current.json`, is left alone.
    ///
    /// # Errors
    /// [`SyncError`] only if the store cannot be asked; what cannot be repaired is in the result.
    pub async fn repair(&self, name: &CatalogName) -> Result<Repair, SyncError> {
        let mut repair = Repair {
            verification: verify(&*self.store, name).await?,
            repaired: Vec::new(),
            failed: Vec::new(),
        };
        self.repair_snapshots(name, &mut repair).await?;
        self.repair_objects(name, &mut repair).await?;
        self.store.flush().await?;
        Ok(repair)
    }

    /// Snapshots first, the published one and those before it: without them nothing is known of the rest.
    async fn repair_snapshots(&self, name: &CatalogName, repair: &mut Repair) -> Result<(), SyncError> {
        let Ok(Some((current, _))) = self.read::<Current>(&Key::Current(name.clone())).await? else {
            return Ok(());
        };
        for (key, states) in snapshots(name, &current) {
            if repair.finds(&key) {
                match self.mend_as_any(name, &key, &states).await {
                    Ok(()) => repair.repaired.push(key.to_string()),
                    Err(error) => repair.failed.push((key.to_string(), chain(&error))),
                }
            }
        }
        if !repair.repaired.is_empty() {
            repair.verification = verify(&*self.store, name).await?;
        }
        Ok(())
    }

    /// The same content may have been published with several Snapshots: the newest that the origin has.
    async fn mend_as_any(&self, name: &CatalogName, key: &Key, states: &[Current]) -> Result<(), SyncError> {
        let mut mended = Ok(());
        for state in states {
            mended = self.mend_snapshot(name, key, state).await;
            if mended.is_ok() {
                break;
            }
        }
        mended
    }

    async fn mend_snapshot(&self, name: &CatalogName, key: &Key, current: &Current) -> Result<(), SyncError> {
        let look = || async {
            let mut report = Report::new(name.clone());
            self.snapshot(name, current, &mut report).await.map(|(_, there)| there)
        };
        let Some((bytes, condition)) = look().await? else {
            return Ok(());
        };
        match self.store.put(key, bytes.clone(), condition.clone()).await {
            // Somebody else may have repaired it meanwhile.
            Err(error) if error.is_conflict() || wants_removal(&condition, &error) => match look().await? {
                None => Ok(()),
                Some(_) if error.is_conflict() => Err(error.into()),
                Some(_) => {
                    self.store.delete(key).await?;
                    Ok(self.store.put(key, bytes, Condition::CreateOnly).await.map(drop)?)
                }
            },
            put => Ok(put.map(drop)?),
        }
    }

    async fn repair_objects(&self, name: &CatalogName, repair: &mut Repair) -> Result<(), SyncError> {
        let named = self.named(name).await?;
        let can_be = |finding: &&Finding| {
            matches!(
                finding.problem,
                Problem::Missing | Problem::Content | Problem::Stored { .. }
            )
        };
        let findings = repair.verification.findings.iter().filter(can_be);
        let wanted: Vec<Named> = findings
            .filter_map(|finding| named.get(&finding.key))
            .cloned()
            .collect();
        let mending: Vec<_> = wanted.into_iter().map(|named| self.mend(named)).collect();
        let mut mending = stream::iter(mending).buffer_unordered(self.settings.in_flight.max(1));
        while let Some((key, mended)) = mending.next().await {
            match mended {
                Ok(()) => repair.repaired.push(key),
                Err(error) => repair.failed.push((key, chain(&error))),
            }
        }
        repair.tidy();
        Ok(())
    }

    async fn mend(&self, named: Named) -> (String, Result<(), SyncError>) {
        let key = named.key.to_string();
        (key, self.try_mend(named).await)
    }

    async fn try_mend(&self, named: Named) -> Result<(), SyncError> {
        let (named, condition) = self.look(named).await?;
        let Some(condition) = condition else { return Ok(()) };
        let mut missing = Missing { named, condition };
        match self.bring(&missing).await {
            Err(SyncError::Store(error)) if wants_removal(&missing.condition, &error) => {
                // Somebody else may have repaired the object meanwhile.
                if self.look(missing.named.clone()).await?.1.is_none() {
                    return Ok(());
                }
                self.store.delete(&missing.named.key).await?;
                missing.condition = Condition::CreateOnly;
                self.bring(&missing).await.map(drop)
            }
            brought => brought.map(drop),
        }
    }

    /// Everything that readable Snapshots of the catalog name, by key.
    async fn named(&self, name: &CatalogName) -> Result<BTreeMap<String, Named>, SyncError> {
        let mut named = BTreeMap::new();
        let Ok(Some((current, _))) = self.read::<Current>(&Key::Current(name.clone())).await? else {
            return Ok(named);
        };
        let hashes = current.previous.iter().map(|previous| previous.content_hash);
        // The published one last, as it wins.
        for hash in hashes.chain([current.content_hash]) {
            let key = Key::Snapshot(name.clone(), hash);
            if let Ok(Some((snapshot, _))) = self.read::<Snapshot>(&key).await? {
                let objects = snapshot.objects(name).into_iter();
                named.extend(objects.map(|named| (named.key.to_string(), named)));
            }
        }
        Ok(named)
    }

    /// A document that cannot be used is a finding already; only a store that fails is an error.
    async fn read<T: layout::Document>(&self, key: &Key) -> Result<ReadDocument<T>, SyncError> {
        match self.store.read_document::<T>(key).await {
            Err(ReadError::Store(error)) => Err(error.into()),
            read => Ok(read),
        }
    }
}

/// The Snapshots that a pointer tells the hashes of, each with what it would be if that were published.
fn snapshots(name: &CatalogName, current: &Current) -> BTreeMap<Key, Vec<Current>> {
    let earlier = current.previous.iter().map(|previous| previous.content_hash);
    let contents: BTreeSet<Sha256> = earlier.chain([current.content_hash]).collect();
    let states = |content_hash| {
        let key = Key::Snapshot(name.clone(), content_hash);
        let state = |sha256| Current {
            content_hash,
            snapshot: SnapshotRef {
                key: key.to_string(),
                sha256,
            },
            ..current.clone()
        };
        let states: Vec<Current> = current.recorded(content_hash).flatten().map(state).collect();
        (!states.is_empty()).then_some((key, states))
    };
    contents.into_iter().filter_map(states).collect()
}

type ReadDocument<T> = Result<Option<(T, store::Version)>, ReadError>;

impl Repair {
    fn finds(&self, key: &Key) -> bool {
        let key = key.to_string();
        self.verification.findings.iter().any(|finding| finding.key == key)
    }

    fn tidy(&mut self) {
        self.repaired.sort();
        self.failed.sort();
        let repaired = &self.repaired;
        self.verification
            .findings
            .retain(|finding| repaired.binary_search(&finding.key).is_err());
    }
}

/// A bucket may deny every write to an immutable key that is not create-only.
fn wants_removal(condition: &Condition, error: &StoreError) -> bool {
    matches!(condition, Condition::Replace(_)) && error.is_denied()
}
