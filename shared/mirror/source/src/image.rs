//! The image that a digest names: its manifest for the platform, and the folders of its content.

use bytes::Bytes;
use fetch::Traffic;
use model::EmptyLayers;
use oci::{
    BlobRef, Digest, ImageDocument, ImageError, ImageManifest, Root, choose_platform, content_root,
    parse_manifest,
};
use tokio::sync::Mutex;

use crate::blob_source::BlobSource;
use crate::verify::wrong_size;
use crate::{Error, SourceSettings};

/// Maximum depth of nested indexes. One is usual, and `docker buildx` makes two.
const MAX_INDEXES: usize = 3;

/// Held while a manifest or an index is parsed and what is needed of it is kept. A hostile one
/// takes 20 times its size in memory, so only one of them is parsed at a time in a process.
pub(crate) static PARSING: Mutex<()> = Mutex::const_new(());

/// The cost of reading one image.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pull {
    /// Bytes of manifests, config and layers received over the network, and requests sent, those
    /// for tokens included.
    pub traffic: Traffic,
    /// Layers that were read to their end.
    pub layers_fetched: usize,
    /// Layers that were not read: they are known to be empty, or upper layers hide them.
    pub layers_skipped: usize,
    /// Paths of the folders that were read, as the files have them; empty for all.
    pub folders: Vec<String>,
    /// Layers of this image without files below the FBC root, known before or found now.
    pub empty_layers: EmptyLayers,
}

/// The image of an index that fits the platform.
pub(crate) struct PlatformImage {
    pub(crate) digest: Digest,
    pub(crate) manifest: ImageManifest,
    /// The indexes that lead to the manifest, and the manifest, as they were received.
    pub(crate) documents: Vec<(Digest, Bytes)>,
}

/// Follows indexes down to the image for the platform.
pub(crate) async fn find(
    blobs: &BlobSource,
    digest: &Digest,
    settings: &SourceSettings,
) -> Result<PlatformImage, Error> {
    let mut digest = digest.clone();
    let mut declared: Option<BlobRef> = None;
    let mut documents = Vec::new();
    for _ in 0..=MAX_INDEXES {
        let body = blobs.manifest(&digest).await?;
        // The digest fits already. A wrong size is refused all the same, because container engines
        // refuse it.
        let actual = body.len() as u64;
        if let Some(declared) = &declared
            && declared.size != actual
        {
            return Err(wrong_size("manifest", declared, actual));
        }
        let _parsing = PARSING.lock().await;
        let parsed = parse_manifest(&digest, &body, &settings.limits)?;
        documents.push((digest.clone(), body));
        match parsed {
            ImageDocument::Image(manifest) => {
                return Ok(PlatformImage {
                    digest,
                    manifest,
                    documents,
                });
            }
            ImageDocument::Index(index) => {
                let chosen = choose_platform(&index, &digest, &settings.platform)?;
                digest = chosen.digest.clone();
                declared = Some(chosen);
            }
        }
    }
    Err(ImageError::Nested(digest).into())
}

/// Returns the root of the folders that the config of an image names.
pub(crate) fn root(
    image: &ImageManifest,
    config: &[u8],
    settings: &SourceSettings,
) -> Result<Root, Error> {
    let digest = &image.config.digest;
    Ok(content_root(
        settings.content,
        digest,
        config,
        &settings.limits,
    )?)
}
