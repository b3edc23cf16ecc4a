use std::{collections::BTreeSet, sync::Arc, time::UNIX_EPOCH};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{CatalogImage, Previous, Sha256};
use reader::{PublishedState, ReaderError};

use crate::router::App;

/// Maximum number of Snapshots that are read at a time.
const CONCURRENT_READS: usize = 4;

/// Images by content hash, newest publication first.
pub(crate) type Images = Arc<[(Sha256, CatalogImage)]>;

impl App {
    /// Returns the images of earlier publications whose Snapshots are still stored.
    pub(super) async fn earlier_images(&self, state: &PublishedState) -> Result<Images, ReaderError> {
        // Snapshots may be collected while the pointer stays, so the list is read again each minute: as long as caches may keep a
        // pointer.
        let now = (self.settings.clock)().duration_since(UNIX_EPOCH).unwrap_or_default();
        let key = (state.document_hash(), now.as_secs() / 60);
        let read = self.read_earlier_images(state);
        Box::pin(self.earlier_images.get_or_load(&key, read)).await
    }

    async fn read_earlier_images(&self, state: &PublishedState) -> Result<Images, ReaderError> {
        let mut seen = BTreeSet::from([state.current().snapshot]);
        let previous = state.current().previous.iter();
        let reads = previous
            .filter(|previous| seen.insert(previous.snapshot))
            .map(|previous| self.earlier_image(state, previous));
        // Collected first: at most sixteen, and the borrow of `seen` ends here.
        let reads: Vec<_> = reads.collect();
        let images: Vec<Option<(Sha256, CatalogImage)>> =
            stream::iter(reads).buffered(CONCURRENT_READS).try_collect().await?;
        Ok(images.into_iter().flatten().collect())
    }

    /// Returns nothing for a Snapshot that is gone or damaged: it must not hide the other images.
    async fn earlier_image(
        &self,
        state: &PublishedState,
        previous: &Previous,
    ) -> Result<Option<(Sha256, CatalogImage)>, ReaderError> {
        match self.catalogs.snapshot(&previous.snapshot).await {
            Ok(snapshot) => Ok(snapshot.image.clone().map(|image| (previous.content_hash, image))),
            Err(error) if error.is_missing() => Ok(None),
            Err(error @ ReaderError::Corrupt { .. }) => {
                tracing::error!(
                    error = model::text::chain(&error),
                    catalog = state.name().as_str(),
                    "left out an earlier image"
                );
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
