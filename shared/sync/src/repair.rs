use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};
use model::{CatalogName, Key, Kind, ManifestEntry, ObjectRef, Snapshot, text::chain};
use publish::Transaction;
use store::read_stored;
use upkeep::{ObjectProblem, Verification, verify};

use crate::{Copier, SyncError, copier::OBJECTS_IN_FLIGHT};

/// Result of repairing one catalog of a store.
#[derive(Debug)]
pub struct Repair {
    /// Findings that are left after the repair.
    pub verification: Verification,
    /// Keys of the objects that were repaired.
    pub repaired: Vec<String>,
    /// Objects that could not be repaired.
    pub failed: Vec<RepairFailure>,
}

/// An object that could not be repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairFailure {
    /// Key of the object, which is its path.
    pub key: String,
    /// Error and its causes on one line.
    pub error: String,
}

impl Copier {
    /// Verifies a catalog of the store, and fetches from the origin each immutable object that is missing or damaged. The
    /// name of such an object is its hash, so any origin will do. Mutable documents such as `current.json` are left alone,
    /// but a name that `catalogs.json` lacks is added.
    ///
    /// # Errors
    /// [`SyncError`] if the store fails. Objects that cannot be repaired are in the result.
    pub async fn repair(&self, name: &CatalogName) -> Result<Repair, SyncError> {
        let span = tracing::info_span!("repair", catalog = %name, source = self.options.source);
        tracing::Instrument::instrument(self.repair_in_span(name), span).await
    }

    async fn repair_in_span(&self, name: &CatalogName) -> Result<Repair, SyncError> {
        let mut repair = Repair {
            verification: verify(&*self.store, name).await?,
            repaired: Vec::new(),
            failed: Vec::new(),
        };
        if repair.verification.findings.is_empty() {
            return Ok(repair);
        }
        let transaction = self.begin(name, true).await?;
        let mut findings = repair.verification.findings.iter();
        if findings.any(|finding| finding.problem == ObjectProblem::Unlisted) {
            transaction.restore_name().await?;
        }
        // Snapshots first: without them it is not known what else should be there.
        let snapshots = snapshots(&transaction);
        let wanted = snapshots.iter().map(|object| ManifestEntry {
            object: *object,
            content: None,
        });
        self.repair_all(&transaction, wanted, &mut repair).await;
        self.store.flush().await?;
        repair.verification = verify(&*self.store, name).await?;
        let wanted = self.named(&snapshots).await?;
        self.repair_all(&transaction, wanted.into_values(), &mut repair).await;
        self.store.flush().await?;
        repair.tidy();
        if !repair.verification.findings.is_empty() {
            // Another writer may have repaired some of them.
            repair.verification = verify(&*self.store, name).await?;
        }
        Ok(repair)
    }

    /// Fetches those of `entries` that are findings, unless their bytes fit their name by now.
    async fn repair_all(
        &self,
        transaction: &Transaction,
        entries: impl Iterator<Item = ManifestEntry>,
        repair: &mut Repair,
    ) {
        let findings = &repair.verification.findings;
        let findings: BTreeSet<Key> = findings.iter().map(|finding| finding.key.clone()).collect();
        let wanted: Vec<_> = entries.filter(|entry| findings.contains(&entry.key())).collect();
        let fetches = wanted
            .into_iter()
            .map(async |entry| (entry.key().to_string(), self.repair_one(transaction, &entry).await));
        let mut fetches = stream::iter(fetches).buffer_unordered(OBJECTS_IN_FLIGHT);
        while let Some((key, brought)) = fetches.next().await {
            match brought {
                Ok(true) => {
                    tracing::info!(key, "repaired object");
                    repair.repaired.push(key);
                }
                // The right bytes with a wrong meaning stay a finding: no copy can repair them.
                Ok(false) => {}
                Err(error) => repair.failed.push(RepairFailure {
                    key,
                    error: chain(&error),
                }),
            }
        }
    }

    /// Fetches an object if its bytes do not fit its name. Returns true if it was fetched.
    async fn repair_one(&self, transaction: &Transaction, entry: &ManifestEntry) -> Result<bool, SyncError> {
        if transaction.find(&entry.object).await? {
            return Ok(false);
        }
        self.bring(transaction, entry).await?;
        Ok(true)
    }

    /// Returns every object that the readable Snapshots name, by key.
    async fn named(&self, snapshots: &[ObjectRef]) -> Result<BTreeMap<Key, ManifestEntry>, SyncError> {
        let mut named = BTreeMap::new();
        for object in snapshots {
            match read_stored::<Snapshot>(&*self.store, &object.digest).await {
                Ok(snapshot) => named.extend(snapshot.objects().into_iter().map(|entry| (entry.key(), entry))),
                // An earlier Snapshot may have been collected, and one that is damaged is a finding already.
                Err(error) if error.is_not_found() || error.is_damage() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(named)
    }
}

/// Returns the published Snapshot and the earlier ones.
fn snapshots(transaction: &Transaction) -> Vec<ObjectRef> {
    let pointer = transaction.pointer().and_then(|pointer| pointer.current.as_ref());
    let Some(current) = pointer else {
        return Vec::new();
    };
    let earlier = current.previous.iter().map(|previous| previous.snapshot);
    let all = std::iter::once(current.snapshot).chain(earlier);
    let all: BTreeSet<ObjectRef> = all.filter(|object| object.kind == Kind::Snapshot).collect();
    all.into_iter().collect()
}

impl Repair {
    /// Sorts the results and drops the findings that are repaired.
    fn tidy(&mut self) {
        self.repaired.sort();
        self.failed.sort_by(|a, b| a.key.cmp(&b.key));
        let repaired: BTreeSet<&str> = self.repaired.iter().map(String::as_str).collect();
        self.verification
            .findings
            .retain(|finding| !repaired.contains(finding.key.to_string().as_str()));
    }
}
