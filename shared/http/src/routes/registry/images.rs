use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::{CatalogImage, Previous, Sha256};
use reader::{PublishedState, ReaderError};

use crate::router::App;

/// Time for which the list of earlier images is used before it is read again: as long as caches may keep a pointer.
const LIST_FRESHNESS: Duration = Duration::from_secs(60);

/// Maximum number of Snapshots that are read at a time.
const CONCURRENT_READS: usize = 4;

/// Images by content hash, newest publication first.
pub(crate) type Images = Arc<[(Sha256, CatalogImage)]>;

/// Images of the publications that a catalog had before, as far as they are stored. Read when first asked for.
#[derive(Debug, Default)]
pub(crate) struct EarlierImages(Mutex<Option<(Instant, Images)>>);

impl EarlierImages {
    fn fresh(&self) -> Option<Images> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|(read, _)| read.elapsed() < LIST_FRESHNESS);
        known.map(|(_, images)| Arc::clone(images))
    }

    fn remember(&self, images: &Images) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((Instant::now(), Arc::clone(images)));
    }
}

impl App {
    /// Returns the images of earlier publications whose Snapshots are still stored.
    pub(super) async fn earlier_images(&self, state: &PublishedState) -> Result<Images, ReaderError> {
        let head = self.head(state);
        if let Some(known) = head.earlier.fresh() {
            return Ok(known);
        }
        let mut seen = BTreeSet::from([state.current().snapshot]);
        let previous = state.current().previous.iter();
        let reads = previous
            .filter(|previous| seen.insert(previous.snapshot))
            .map(|previous| self.earlier_image(state, previous));
        // Collected first: at most sixteen, and the borrow of `seen` ends here.
        let reads: Vec<_> = reads.collect();
        let images: Vec<Option<(Sha256, CatalogImage)>> =
            stream::iter(reads).buffered(CONCURRENT_READS).try_collect().await?;
        let images: Images = images.into_iter().flatten().collect();
        head.earlier.remember(&images);
        Ok(images)
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
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, catalog = state.name().as_str(), "left out an earlier image");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
