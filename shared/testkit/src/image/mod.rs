//! Container images as builders push them.

mod builder;
mod layer;
mod layout;

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Sha256;
use serde_json::{Value, json};

pub use builder::ImageBuilder;
pub(crate) use builder::MANIFEST;
pub use layer::{Layer, gzip, zstd};

/// Image or index with everything that it refers to.
#[derive(Clone, Debug)]
#[must_use]
pub struct Image {
    /// Digest of the manifest or index.
    pub digest: String,
    /// Media type of the manifest or index.
    pub media_type: String,
    /// Digests of the layers, the lowest first; empty for an index.
    pub layers: Vec<String>,
    /// All manifests by digest, each with its media type.
    pub manifests: BTreeMap<String, (String, Bytes)>,
    /// All configurations and layers by digest.
    pub blobs: BTreeMap<String, Bytes>,
}

/// Returns the digest of `bytes` as `sha256:HEX`.
///
/// ```
/// let digest = testkit::digest(b"");
/// assert_eq!(digest, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
/// ```
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", Sha256::of(bytes))
}

/// Builds an index of images, each for a platform such as `linux/amd64`.
pub fn index(images: &[(&str, &Image)]) -> Image {
    let media_type = "application/vnd.oci.image.index.v1+json";
    let mut entries = Vec::new();
    for (platform, image) in images {
        let (os, architecture) = platform
            .split_once('/')
            .expect("a platform is os/architecture");
        entries.push(json!({
            "mediaType": image.media_type,
            "digest": image.digest,
            "size": image.manifest().len(),
            "platform": {"os": os, "architecture": architecture},
        }));
    }
    let body = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": entries});
    let mut index = Image::of_manifest(media_type, body.to_string().into());
    for (_, image) in images {
        index.manifests.extend(image.manifests.clone());
        index.blobs.extend(image.blobs.clone());
    }
    index
}

impl Image {
    /// Builds an image of this manifest alone. The manifest may be anything.
    pub fn of_manifest(media_type: &str, body: Bytes) -> Self {
        let digest = digest(&body);
        Self {
            media_type: media_type.to_owned(),
            layers: Vec::new(),
            manifests: BTreeMap::from([(digest.clone(), (media_type.to_owned(), body))]),
            blobs: BTreeMap::new(),
            digest,
        }
    }

    /// Changes the manifest and keeps the blobs, so that the manifest can name them wrongly.
    pub fn with_changed_manifest(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let (media_type, body) = self
            .manifests
            .remove(&self.digest)
            .expect("the manifest is there");
        let mut manifest = serde_json::from_slice(&body).expect("the manifest is JSON");
        change(&mut manifest);
        let changed = Self::of_manifest(&media_type, manifest.to_string().into());
        self.manifests.extend(changed.manifests);
        Self {
            digest: changed.digest,
            ..self
        }
    }

    /// Returns the bytes of the manifest or index.
    pub fn manifest(&self) -> &Bytes {
        &self.manifests[&self.digest].1
    }
}
