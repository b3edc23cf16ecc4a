use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};
use model::{CatalogName, ManifestEntry, text::chain};
use publish::Transaction;
use upkeep::{ObjectProblem, Verification, verify};

use crate::{Copier, SyncError, copier::OBJECTS_IN_FLIGHT};

/// Result of repairing one catalog of a store.
#[derive(Debug)]
pub struct Repair {
    /// Findings that are left after the repair.
    pub verification: Verification,
    /// Keys of the objects that were repaired.
    pub repaired: BTreeSet<String>,
    /// Objects that could not be repaired: the error and its causes on one line, by the key.
    pub failed: BTreeMap<String, String>,
}

impl Copier {
    /// Verifies a catalog of the store, and fetches from the origin each immutable object that is
    /// missing or damaged. The name of such an object is its hash, so any origin will do. Mutable
    /// documents such as `current.json` are left alone, but a name that `catalogs.json` lacks is
    /// added.
    ///
    /// # Errors
    /// [`SyncError`] if the store fails. Objects that cannot be repaired are in the result.
    #[tracing::instrument(skip_all, fields(catalog = %name, source = self.options.source))]
    pub async fn repair(&self, name: &CatalogName) -> Result<Repair, SyncError> {
        let mut repair = Repair {
            verification: verify(&*self.store, name).await?,
            repaired: BTreeSet::new(),
            failed: BTreeMap::new(),
        };
        if repair.verification.findings.is_empty() {
            return Ok(repair);
        }
        let transaction = self.begin(name, true).await?;
        let mut findings = repair.verification.findings.iter();
        if findings.any(|finding| finding.problem == ObjectProblem::Unlisted) {
            transaction.restore_name().await?;
            repair.verification = verify(&*self.store, name).await?;
        }
        // Again after each pass: a damaged Snapshot hides what else should be there.
        let mut tried = BTreeSet::new();
        loop {
            let found = repair
                .verification
                .findings
                .iter()
                .filter_map(|finding| finding.entry);
            let wanted: Vec<_> = found.filter(|entry| tried.insert(entry.key())).collect();
            if wanted.is_empty() {
                break;
            }
            self.repair_all(&transaction, wanted, &mut repair).await;
            self.store.flush().await?;
            repair.verification = verify(&*self.store, name).await?;
        }
        Ok(repair)
    }

    /// Fetches these objects, unless their bytes fit their names by now.
    async fn repair_all(
        &self,
        transaction: &Transaction,
        wanted: Vec<ManifestEntry>,
        repair: &mut Repair,
    ) {
        let fetches = wanted.into_iter().map(async |entry| {
            let brought = self.repair_one(transaction, &entry).await;
            (entry.key().to_string(), brought)
        });
        let mut repaired = stream::iter(fetches).buffer_unordered(OBJECTS_IN_FLIGHT);
        while let Some((key, brought)) = repaired.next().await {
            match brought {
                Ok(true) => {
                    tracing::info!(key, "repaired object");
                    repair.repaired.insert(key);
                }
                // The right bytes with a wrong meaning stay a finding: no copy can repair them.
                Ok(false) => {}
                Err(error) => drop(repair.failed.insert(key, chain(&error))),
            }
        }
    }

    /// Fetches an object if its bytes do not fit its name. Returns true if it was fetched.
    async fn repair_one(
        &self,
        transaction: &Transaction,
        entry: &ManifestEntry,
    ) -> Result<bool, SyncError> {
        if transaction.find(&entry.object).await? {
            return Ok(false);
        }
        self.bring(transaction, entry).await?;
        Ok(true)
    }
}
