use std::sync::Arc;

use compose::Explanation;
use publish::{ComposedCatalog, ComposedSource, Mirror, MirrorSettings, PollError, PollMetrics};
use store::{FolderStore, Store};
use tempfile::TempDir;

use crate::reader::SHARD_LEVEL;
use crate::{InspectError, SourceReader};

/// A composition that is made and not published.
pub struct Composer {
    mirror: Mirror,
    composed: ComposedSource,
    /// Folder of the store of the mirror, if there is no other one.
    _empty: Option<TempDir>,
}

impl Composer {
    /// Prepares a composition. Inputs that the store has are read from there. Without a store each
    /// input is pulled.
    ///
    /// # Errors
    /// A store that cannot be read, or no temporary folder in place of one.
    pub async fn new(
        mut composed: ComposedSource,
        store: Option<Arc<dyn Store>>,
        reader: &SourceReader,
    ) -> Result<Self, InspectError> {
        let mut empty = None;
        let store = match store {
            Some(store) => store,
            None => {
                let folder = TempDir::new().map_err(InspectError::Folder)?;
                let store = FolderStore::open(folder.path().join("store"));
                empty = Some(folder);
                Arc::new(store.map_err(store::ReadError::from)?)
            }
        };
        composed.share_published(&*store).await?;
        let mut settings = MirrorSettings::with_limits(&reader.limits);
        settings.render.shard_level = SHARD_LEVEL;
        let sources = reader.sources.clone();
        let mirror = Mirror::new(sources, store, settings, PollMetrics::default());
        Ok(Self {
            mirror,
            composed,
            _empty: empty,
        })
    }

    /// Composes the catalog.
    ///
    /// # Errors
    /// As [`Mirror::compose`], and an input for which a poll would wait.
    pub async fn compose(&self) -> Result<ComposedCatalog, InspectError> {
        self.mirror.compose(&self.composed).await.map_err(refused)
    }

    /// Tells for each bundle the reason for which it is in or out.
    ///
    /// # Errors
    /// As [`Self::compose`].
    pub async fn explain(&self) -> Result<Explanation, InspectError> {
        self.mirror.explain(&self.composed).await.map_err(refused)
    }
}

/// Refuses an input that cannot be used now: nothing waits for it here.
fn refused(error: PollError) -> InspectError {
    match error {
        PollError::Waiting { input, reason } => {
            InspectError::refused(format!("input {input}: {reason}"))
        }
        error => error.into(),
    }
}
