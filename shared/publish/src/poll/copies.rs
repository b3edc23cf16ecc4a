use model::EmptyLayers;
use source::{Digest, Download, Source, Sources};

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
    /// Copies an image of a registry to disk, unless that was done already. Returns the bytes received.
    pub(crate) async fn download(
        &mut self,
        images: &Sources,
        source: &Source,
        digest: &Digest,
        known: &EmptyLayers,
    ) -> Result<u64, PollError> {
        let Source::Registry { reference, .. } = source else {
            return Ok(0);
        };
        if self.get(digest).is_some() {
            return Ok(0);
        }
        tracing::info!(%digest, "the image is copied to disk first");
        let space = &images.settings().download_space;
        let download = images
            .download(reference, digest, &skippable_layers(known), space)
            .await?;
        let bytes = download.pull.bytes;
        let digest = digest.clone();
        self.0.push(ImageCopy { digest, download });
        Ok(bytes)
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

/// Copies to disk what must not be read from a registry while a permit is held.
pub(crate) async fn copy_first(poll: &mut Poll<'_>, digest: &Digest) -> Result<(), PollError> {
    // No other catalog is pulled while a suspect is read, so a slow registry would stop them all.
    if poll.is_suspect(digest) {
        copy_image(poll, digest).await?;
    }
    let Some(inputs) = &poll.inputs else {
        return Ok(());
    };
    let (images, known) = (poll.mirror.images(poll.catalog), EmptyLayers::default());
    // A composition reads its inputs one after the other, each to its end.
    for input in inputs.pulled() {
        if let Some(source) = input.catalog.source.pulled() {
            let copied = poll.copies.download(&images, source, &input.digest, &known);
            poll.report.bytes_pulled += input.named(copied.await)?;
        }
    }
    Ok(())
}

/// Copies the image of the catalog to disk.
pub(crate) async fn copy_image(poll: &mut Poll<'_>, digest: &Digest) -> Result<(), PollError> {
    if let Some(source) = poll.catalog.source.pulled() {
        let known = poll.empty_layers.clone().unwrap_or_default();
        let images = poll.mirror.images(poll.catalog);
        poll.report.bytes_pulled += poll.copies.download(&images, source, digest, &known).await?;
    }
    Ok(())
}
