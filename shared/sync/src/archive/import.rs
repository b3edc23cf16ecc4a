use std::sync::Arc;

use layout::{CatalogName, Key};
use store::Store;

use super::Archive;
use crate::{Copier, Progress, Report, Settings, SyncError, plan::Missing};

/// Why nothing was imported. The store has not been touched.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A catalog of the archive cannot replace what is there.
    #[error("{catalog} was not imported, nor was anything else")]
    Catalog {
        /// Which.
        catalog: CatalogName,
        /// Why.
        source: SyncError,
    },
    /// The archive is relative to a state that the store does not hold.
    #[error(
        "the archive lacks {count} objects of {catalog} that the store does not hold or holds damaged, such as {example}: \
         export again since a receipt of this store, or everything"
    )]
    Lacks {
        /// Which catalog.
        catalog: CatalogName,
        /// One of them.
        example: String,
        /// How many.
        count: usize,
    },
}

/// Takes an archive into a store: first everything is checked, then everything is written, pointers last.
pub struct Importer {
    archive: Arc<Archive>,
    copier: Copier,
}

impl Importer {
    /// An import of `archive` into `store`. Of the settings, only what is allowed and the source matter.
    pub fn new(archive: Archive, store: Arc<dyn Store>, settings: Settings) -> Self {
        let archive = Arc::new(archive);
        let settings = Settings {
            // What the archive leaves out has to be there, and sound: there is nobody to ask for it later.
            recheck: true,
            rebuild: !archive.is_whole(),
            ..settings
        };
        Self {
            copier: Copier::new(archive.clone(), store, settings),
            archive,
        }
    }

    /// How far the import is.
    pub fn progress(&self) -> Arc<Progress> {
        self.copier.progress()
    }

    /// Imports all catalogs of the archive.
    ///
    /// # Errors
    /// [`ImportError`] before the first write. What happens afterwards is in the reports.
    pub async fn run(&self) -> Result<Vec<Report>, ImportError> {
        let catalogs = &self.archive.manifest().catalogs;
        let names: Vec<CatalogName> = catalogs.iter().map(|catalog| catalog.name.clone()).collect();
        for name in &names {
            self.rehearse(name).await?;
        }
        Ok(self.copier.copy_all(&names).await)
    }

    async fn rehearse(&self, name: &CatalogName) -> Result<(), ImportError> {
        let failed = |source| ImportError::Catalog {
            catalog: name.clone(),
            source,
        };
        let plan = self
            .copier
            .plan(name, &mut Report::new(name.clone()))
            .await
            .map_err(failed)?;
        let missing = plan.map(|plan| plan.missing).unwrap_or_default();
        let lacking = missing.iter().filter(|missing| !self.brings(missing));
        let lacking: Vec<&Key> = lacking.map(|missing| &missing.named.key).collect();
        match lacking.first() {
            None => Ok(()),
            Some(example) => Err(ImportError::Lacks {
                catalog: name.clone(),
                example: example.to_string(),
                count: lacking.len(),
            }),
        }
    }

    fn brings(&self, missing: &Missing) -> bool {
        (self.copier.settings.rebuild && missing.is_derived()) || self.archive.extent(&missing.named.key).is_some()
    }
}
