use model::EmptyLayers;
use source::{Digest, Download, Source};

use super::{once::Poll, pull::skippable_layers};
use crate::PollError;

/// Copies of images on disk, for one poll.
#[derive(Debug, Default)]
pub(crate) struct ImageCopies(Vec<ImageCopy>);

#[derive(Debug)]
struct ImageCopy {
    digest: Digest,
    download: Download,
}

impl ImageCopies {
    pub(crate) fn add(&mut self, digest: &Digest, download: Download) {
        let digest = digest.clone();
        self.0.push(ImageCopy { digest, download });
    }

    /// Returns the copy of an image, if there is one.
    pub(crate) fn get(&self, digest: &Digest) -> Option<&Download> {
        let copy = self.0.iter().find(|copy| copy.digest == *digest)?;
        Some(&copy.download)
    }

    /// Returns the digest of the newest copy.
    pub(crate) fn last(&self) -> Option<&Digest> {
        self.0.last().map(|copy| &copy.digest)
    }

    /// Returns the copy of an image, or else `source` itself.
    pub(crate) fn source(&self, source: &Source, digest: &Digest) -> Source {
        self.get(digest).map_or_else(|| source.clone(), Download::source)
    }
}

impl Poll<'_> {
    /// Copies to disk what must not be read from a registry while a permit is held.
    pub(crate) async fn download_first(&mut self, digest: &Digest) -> Result<(), PollError> {
        // No other catalog is pulled while a suspect is read, so a slow registry would stop them all.
        if self.is_suspect(digest) {
            self.download(digest).await?;
        }
        let Some(composed) = self.catalog.source.composed() else {
            return Ok(());
        };
        // A composition reads its inputs one after the other, each to its end.
        let pulled = self.inputs.iter().flat_map(|inputs| inputs.pulled(composed));
        let pulled = pulled.filter_map(|input| Some((input.catalog.source.pulled()?, input.digest.clone())));
        let pulled: Vec<_> = pulled.collect();
        for (source, digest) in pulled {
            self.copy(source, &digest, &EmptyLayers::default()).await?;
        }
        Ok(())
    }

    /// Copies the image of the catalog to disk.
    pub(crate) async fn download(&mut self, digest: &Digest) -> Result<(), PollError> {
        let known = self.empty_layers.clone().unwrap_or_default();
        match self.catalog.source.pulled() {
            Some(source) => self.copy(source, digest, &known).await,
            None => Ok(()),
        }
    }

    /// Copies an image to disk, unless that was done already or it is on this machine.
    async fn copy(&mut self, source: &Source, digest: &Digest, known: &EmptyLayers) -> Result<(), PollError> {
        let Source::Registry { reference, .. } = source else {
            return Ok(());
        };
        if self.copies.get(digest).is_some() {
            return Ok(());
        }
        tracing::info!(%digest, "the image is copied to disk first");
        let images = self.mirror.images(self.catalog);
        let space = &self.mirror.settings.download_space;
        let copy = images
            .download(reference, digest, &skippable_layers(known), space)
            .await?;
        self.report.bytes_pulled += copy.pull.bytes;
        self.copies.add(digest, copy);
        Ok(())
    }
}
