use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, TryStreamExt, stream};
use layout::{Image, Key, Sha256};

use crate::{
    app::App,
    error::{Corruption, Error},
    published::{Published, parse_snapshot},
};

/// How long earlier images are taken to be there without another look: as long as caches may keep a pointer.
const TRUST: Duration = Duration::from_secs(60);
/// How many snapshots are read at a time.
const SIDE_BY_SIDE: usize = 4;

/// The images of the contents that a catalog had before, newest first, as far as they are kept.
pub(crate) type Images = Arc<[(Sha256, Image)]>;

/// They, once somebody has asked for them.
#[derive(Debug, Default)]
pub(crate) struct Earlier(Mutex<Option<(Instant, Images)>>);

impl Earlier {
    fn fresh(&self) -> Option<Images> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|(read, _)| read.elapsed() < TRUST);
        known.map(|(_, images)| Arc::clone(images))
    }

    fn remember(&self, images: &Images) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((Instant::now(), Arc::clone(images)));
    }
}

impl Published {
    /// The current image, if this content was published with one.
    pub(super) fn images(&self) -> impl Iterator<Item = (Sha256, &Image)> {
        let image = self.snapshot.image.iter();
        image.map(|image| (self.current.content_hash, image))
    }
}

impl App {
    /// The images of earlier publications whose snapshots are still there.
    pub(super) async fn earlier(&self, published: &Published) -> Result<Images, Error> {
        if let Some(known) = published.earlier.fresh() {
            return Ok(known);
        }
        let mut seen = BTreeSet::from([published.current.content_hash]);
        let hashes = published.current.previous.iter().map(|previous| previous.content_hash);
        let reads = hashes
            .filter(|hash| seen.insert(*hash))
            .map(|hash| self.image(published, hash));
        // Their number is bounded, so no future is made for nothing.
        let reads: Vec<_> = reads.collect();
        let images: Vec<Option<(Sha256, Image)>> = stream::iter(reads).buffered(SIDE_BY_SIDE).try_collect().await?;
        let images: Images = images.into_iter().flatten().collect();
        published.earlier.remember(&images);
        Ok(images)
    }

    /// A snapshot that is broken hides only itself.
    async fn image(&self, published: &Published, hash: Sha256) -> Result<Option<(Sha256, Image)>, Error> {
        let key = Key::Snapshot(published.name.clone(), hash);
        let snapshot = match self.read(&key).await {
            Ok(bytes) => parse_snapshot(&key, &bytes),
            Err(error) => Err(error),
        };
        match snapshot {
            Ok(snapshot) => Ok(snapshot.image.map(|image| (hash, image))),
            Err(Error::Corrupt {
                source: Corruption::Missing,
                ..
            }) => Ok(None),
            Err(error @ Error::Corrupt { .. }) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, catalog = published.name.as_str(), "an earlier image is left out");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
