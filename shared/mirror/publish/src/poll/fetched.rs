//! Images at their digests, and what a poll has fetched of them.

use std::collections::BTreeMap;

use model::EmptyLayers;
use source::{Digest, Download, Pull, Source, Sources};

use crate::{PollError, PulledSource};

/// Source that is pulled, at the digest that it has now.
#[derive(Debug)]
pub(super) struct PulledRevision<'c> {
    pub(super) pulled: &'c PulledSource,
    pub(super) digest: Digest,
}

/// Images that a poll has fetched, and the cost of all of them.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    /// Copies on disk.
    copies: BTreeMap<Digest, Download>,
    /// Bytes received from sources over the network.
    pub(super) bytes: u64,
    /// Number of layers that were fetched.
    pub(super) layers_fetched: usize,
    /// Layers that were not fetched because they are known to hold no FBC.
    pub(super) layers_skipped: usize,
}

impl Fetched {
    /// Copies an image from its registry to disk, unless that was done already. Layers in `empty`
    /// are not fetched. Returns false for a source that is not in a registry, which is never
    /// copied.
    pub(super) async fn copy(
        &mut self,
        images: &Sources,
        revision: &PulledRevision<'_>,
        empty: &EmptyLayers,
    ) -> Result<bool, PollError> {
        let Source::Registry { reference, .. } = &revision.pulled.source else {
            return Ok(false);
        };
        let digest = &revision.digest;
        if !self.copies.contains_key(digest) {
            tracing::info!(%digest, "the image is copied to disk first");
            let download = images.download(reference, digest, empty).await?;
            self.bytes += download.traffic.bytes;
            self.copies.insert(digest.clone(), download);
        }
        Ok(true)
    }

    /// Returns the source to read an image from: its copy, if there is one.
    pub(super) fn source<'a>(&'a self, revision: &'a PulledRevision<'_>) -> &'a Source {
        match self.copies.get(&revision.digest) {
            Some(copy) => &copy.source,
            None => &revision.pulled.source,
        }
    }

    /// Adds the cost of an image that was read.
    pub(super) fn add(&mut self, pull: &Pull) {
        self.bytes += pull.traffic.bytes;
        self.layers_fetched += pull.layers_fetched;
        self.layers_skipped += pull.layers_skipped;
    }
}
