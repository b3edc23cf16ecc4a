//! The images of an index, for copies that take only some of them.

use oci::{Digest, TargetPlatform, parse_document};
use serde::Deserialize;

use crate::Error;
use crate::image::PARSING;
use crate::registry::Session;

/// Image of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedImage {
    /// Digest of its manifest.
    pub digest: Digest,
    /// Platform that it is for; `None` for an attestation, or if the index does not say it.
    pub platform: Option<TargetPlatform>,
}

#[derive(Deserialize)]
struct IndexOutline {
    #[serde(default)]
    manifests: Vec<IndexEntry>,
}

#[derive(Deserialize)]
struct IndexEntry {
    digest: Digest,
    platform: Option<TargetPlatform>,
}

/// Returns the images of an index, or nothing if the digest is that of one image.
pub(crate) async fn indexed_images(
    session: &Session,
    digest: &Digest,
) -> Result<Vec<IndexedImage>, Error> {
    let body = session.manifest(digest).await?;
    let _parsing = PARSING.lock().await;
    let index: IndexOutline = parse_document("manifest", digest, &body)?;
    let images = index.manifests.into_iter().map(|entry| IndexedImage {
        digest: entry.digest,
        platform: entry.platform,
    });
    Ok(images.collect())
}
