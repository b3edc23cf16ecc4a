//! Content of a catalog as a poll finds it: one source at its digest, or a composition of inputs at
//! their states.

use std::sync::Arc;

use model::{EmptyLayers, Snapshot, SourceRef};
use source::{Digest, Sources};

use super::catalog_poll::Poll;
use super::composed::{compose, first_notices};
use super::content::NewContent;
use super::fetched::{Fetched, PulledRevision};
use super::pulled::ContentReader;
use super::resolved::ResolvedComposition;
use super::ring::ResolvedRing;
use super::signatures::verify;
use crate::{CatalogSource, PollError, Transaction};

/// Content of a catalog at its revision. Nothing of it has been read.
pub(super) enum Found<'c> {
    /// Image or other source.
    Pulled(PulledRevision<'c>),
    /// Composition of other catalogs.
    Composed(ResolvedComposition<'c>),
    /// State of another catalog.
    Ring(Box<ResolvedRing<'c>>),
}

impl<'c> Found<'c> {
    /// Finds the digest of a source, the states of the inputs of a composition, or the state of a
    /// ring. `copied` is the digest of a source that was copied to disk.
    pub(super) async fn find(
        poll: &Poll<'c>,
        transaction: &Transaction,
        copied: Option<&Digest>,
    ) -> Result<Self, PollError> {
        let mirror = poll.mirror;
        let images = &poll.images;
        let pulled = match &poll.catalog.source {
            CatalogSource::Pulled(pulled) => pulled,
            CatalogSource::Composed(composed) => {
                let base = transaction.base();
                let found = ResolvedComposition::find(mirror, images, composed, base).await?;
                return Ok(Self::Composed(found));
            }
            CatalogSource::Ring(ring) => {
                let promotion = poll.options.promotion.as_ref();
                let found = ResolvedRing::find(mirror, transaction, ring, promotion).await?;
                return Ok(Self::Ring(Box::new(found)));
            }
        };
        let digest = match copied {
            // What was copied, once, is published. The next poll sees what has come since.
            Some(digest) => digest.clone(),
            None => mirror.resolve(images, &pulled.source).await?,
        };
        Ok(Self::Pulled(PulledRevision { pulled, digest }))
    }

    /// Returns the digest of the source, or the revision of the composition or of the ring.
    pub(super) const fn revision(&self) -> &Digest {
        match self {
            Self::Pulled(found) => &found.digest,
            Self::Composed(found) => &found.revision,
            Self::Ring(found) => &found.revision,
        }
    }

    /// Returns the ring, if it is one.
    pub(super) const fn ring(&self) -> Option<&ResolvedRing<'c>> {
        match self {
            Self::Ring(found) => Some(found),
            Self::Pulled(_) | Self::Composed(_) => None,
        }
    }

    /// Verifies the signatures of each image that has a policy, and returns the source at this
    /// revision. `reference` is its text. Signatures that `known` says were verified are not
    /// fetched again.
    pub(super) async fn verify(
        &self,
        images: &Sources,
        reference: String,
        known: Option<&SourceRef>,
    ) -> Result<SourceRef, PollError> {
        let mut source = SourceRef {
            reference,
            revision: self.revision().to_string(),
            ..SourceRef::default()
        };
        match self {
            Self::Pulled(found) => source.verified = verify(images, found, known).await?,
            Self::Composed(found) => {
                // The revision covers the policies.
                if known.is_none_or(|known| known.revision != source.revision) {
                    found.verify_inputs(images).await?;
                }
                source.inputs = found.published();
                let composed = found.composed;
                source.target.clone_from(&composed.target);
                let template = &composed.composition.catalog_source;
                source.catalog_source.clone_from(template);
            }
            Self::Ring(found) => {
                source.verified = found.verified();
                source.ring = Some(Box::new(found.ring.clone()));
            }
        }
        Ok(source)
    }

    /// Returns true for what must not be read from a registry while a place is held.
    pub(super) const fn is_copied_first(&self, is_suspect: bool) -> bool {
        match self {
            // No other catalog is pulled while a suspect is read, so a slow registry would stop
            // them all.
            Self::Pulled(_) => is_suspect,
            // A composition reads its inputs one after the other, each to its end.
            Self::Composed(_) => true,
            Self::Ring(_) => false,
        }
    }

    /// Copies images from their registries to disk, without the layers of the catalog's own image
    /// that are in `empty`. Returns true if that image was copied.
    pub(super) async fn copy(
        &self,
        images: &Sources,
        empty: &EmptyLayers,
        fetched: &mut Fetched,
    ) -> Result<bool, PollError> {
        match self {
            Self::Pulled(found) => fetched.copy(images, found, empty).await,
            Self::Composed(found) => {
                found.copy_inputs(images, fetched).await?;
                Ok(false)
            }
            Self::Ring(_) => Ok(false),
        }
    }

    /// Pulls or composes the content, and renders it. Shards of `reusable` are used again. Fails
    /// with the error of a slow registry if that is too slow to wait for.
    pub(super) async fn read(
        &self,
        reader: &ContentReader,
        transaction: &Transaction,
        reusable: Option<&Snapshot>,
        empty: &EmptyLayers,
        fetched: &mut Fetched,
    ) -> Result<NewContent, PollError> {
        match self {
            Self::Pulled(found) => {
                let stored = reader.published_shards(reusable).await;
                let renderer = reader.renderer(stored);
                let wait = reader.registry_wait;
                let read = reader.read(found, empty, renderer, wait, fetched).await?;
                Ok(NewContent {
                    rendering: Arc::new(read.rendering),
                    inputs: Vec::new(),
                    notices: None,
                    empty_layers: Some(read.empty_layers),
                })
            }
            Self::Composed(found) => {
                let composed = compose(found, reader, Some(transaction), reusable, fetched).await?;
                let notices = first_notices(&composed.explanation);
                for notice in &notices {
                    tracing::info!(%notice, "composed");
                }
                Ok(NewContent {
                    rendering: Arc::new(composed.rendering),
                    inputs: composed.inputs,
                    notices: Some(notices),
                    empty_layers: None,
                })
            }
            Self::Ring(found) => found.compose(reader, transaction, reusable, fetched).await,
        }
    }
}
