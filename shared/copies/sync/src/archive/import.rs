use std::sync::Arc;

use model::{CatalogName, ManifestEntry};
use store::Store;

use super::{Archive, ArchiveError};
use crate::{
    Copier, CopyProgress, Origin, SyncError, SyncOptions, SyncReport, copier::CopyState,
    planned::Planned,
};

/// Imports an archive into a store: checks everything, then writes everything, pointers last.
pub struct Importer {
    archive: Arc<Archive>,
    copier: Copier,
}

impl Importer {
    /// Creates an import of `archive` into `store`. `recheck` and `fetch_all` of the options are
    /// ignored: they follow from the archive.
    pub fn new(archive: Arc<Archive>, store: Arc<dyn Store>, options: SyncOptions) -> Self {
        let options = SyncOptions {
            // An object that the archive leaves out must be there and intact, because it cannot be
            // fetched later.
            recheck: true,
            fetch_all: archive.is_whole(),
            ..options
        };
        Self {
            copier: Copier::new(Origin::Mirror(archive.clone()), store, options),
            archive,
        }
    }

    /// Returns the progress of the import.
    pub fn progress(&self) -> Arc<CopyProgress> {
        self.copier.progress()
    }

    /// Imports all catalogs of the archive.
    ///
    /// # Errors
    /// [`SyncError`] before the first write, if one of the catalogs cannot be imported. Later
    /// errors are in the reports.
    pub async fn run(&self) -> Result<Vec<SyncReport>, SyncError> {
        let catalogs = &self.archive.manifest().catalogs;
        let names: Vec<CatalogName> = catalogs
            .iter()
            .map(|catalog| catalog.name.clone())
            .collect();
        for name in &names {
            self.rehearse(name).await?;
        }
        Ok(self.copier.copy_all(&names).await)
    }

    /// Checks that a catalog can be imported, without a write.
    async fn rehearse(&self, name: &CatalogName) -> Result<(), SyncError> {
        let failed = |source| SyncError::Import {
            catalog: name.clone(),
            source: Box::new(source),
        };
        let mut state = CopyState::new(name, true);
        let missing = match self.copier.plan(name, &mut state).await.map_err(failed)? {
            Planned::Unchanged(_) => return Ok(()),
            // A server may lag for some minutes. An archive that is behind was carried here for
            // nothing, which is an error.
            Planned::Behind { theirs, ours } => {
                return Err(failed(SyncError::Rollback { theirs, ours }));
            }
            Planned::Copy(plan) => plan.missing,
        };
        let fetches_all = self.copier.options.fetch_all;
        let mut lacking = Vec::new();
        for key in missing.iter().map(ManifestEntry::key) {
            let is_made = !fetches_all && key.is_derived();
            if !is_made && !self.archive.holds(&key) {
                lacking.push(key);
            }
        }
        match lacking.first() {
            None => Ok(()),
            Some(example) => Err(ArchiveError::Refused(format!(
                "the archive lacks {} objects of {name} that the store does not hold or holds damaged, such as {example}: \
                 export again since a receipt of this store, or everything",
                lacking.len()
            ))
            .into()),
        }
    }
}
