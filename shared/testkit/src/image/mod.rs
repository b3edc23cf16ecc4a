//! Images, as builders would push them.

mod builder;
mod layer;
mod layout;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub use builder::{Format, ImageBuilder};
pub use layer::{Layer, gzip, zstd};

/// A finished image or index with everything it refers to.
#[derive(Clone, Debug)]
pub struct Image {
    /// The digest of the manifest or index.
    pub digest: String,
    /// Its media type.
    pub media_type: String,
    /// The digests of the layers from the bottom up; none for an index.
    pub layers: Vec<String>,
    /// All manifests by digest, with their media types.
    pub manifests: BTreeMap<String, (String, Bytes)>,
    /// All blobs by digest.
    pub blobs: BTreeMap<String, Bytes>,
}

/// The sha256 digest of `bytes`.
pub fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// An index over images, each for a platform such as `linux/amd64`.
pub fn index(images: &[(&str, &Image)]) -> Image {
    let media_type = "application/vnd.oci.image.index.v1+json";
    let entries: Vec<_> = images.iter().map(|(platform, image)| entry(platform, image)).collect();
    let body = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": entries});
    let mut index = Image::of_manifest(media_type, body.to_string().into());
    for (_, image) in images {
        index.manifests.extend(image.manifests.clone());
        index.blobs.extend(image.blobs.clone());
    }
    index
}

fn entry(platform: &str, image: &Image) -> serde_json::Value {
    let (os, architecture) = platform.split_once('/').expect("a platform is os/architecture");
    json!({
        "mediaType": image.media_type,
        "digest": image.digest,
        "size": image.manifest().len(),
        "platform": {"os": os, "architecture": architecture},
    })
}

impl Image {
    /// An image that is nothing but this manifest, whatever it says.
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

    /// The same blobs under a manifest that says something else.
    #[must_use]
    pub fn told(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let (media_type, body) = self.manifests.remove(&self.digest).expect("the manifest is there");
        let mut manifest = serde_json::from_slice(&body).expect("the manifest is JSON");
        change(&mut manifest);
        let told = Self::of_manifest(&media_type, manifest.to_string().into());
        self.manifests.extend(told.manifests);
        Self {
            digest: told.digest,
            ..self
        }
    }

    /// The same layers with another config, which need not be one.
    #[must_use]
    pub fn with_config(mut self, config: impl Into<Bytes>) -> Self {
        let config = config.into();
        let (digest, size) = (digest(&config), config.len());
        self.blobs.insert(digest.clone(), config);
        self.told(|manifest| {
            manifest["config"]["digest"] = digest.into();
            manifest["config"]["size"] = size.into();
        })
    }

    /// The same, its registry answering with these bytes where it should with the first layer.
    #[must_use]
    pub fn with_false_layer(mut self, bytes: impl Into<Bytes>) -> Self {
        self.blobs.insert(self.layers[0].clone(), bytes.into());
        self
    }

    /// The bytes of the top-level manifest or index.
    pub fn manifest(&self) -> &Bytes {
        &self.manifests[&self.digest].1
    }
}
