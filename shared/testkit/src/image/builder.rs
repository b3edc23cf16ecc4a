//! Builds an image from layers and labels.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::image::layer::Packed;
use crate::image::{Image, Layer, digest};

const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";

/// Media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Builder of an image in OCI format. The default has no layers and no labels.
///
/// ```
/// use testkit::{ImageBuilder, Layer};
///
/// let layer = Layer::new().file("configs/db/catalog.json", r#"{"schema":"olm.package","name":"db"}"#);
/// let image = ImageBuilder::catalog("/configs").layer(layer).build();
/// assert_eq!(image.layers.len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ImageBuilder {
    layers: Vec<Layer>,
    labels: BTreeMap<String, String>,
}

impl ImageBuilder {
    /// Creates a builder without layers and labels.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a builder with the label that makes `root` the root of the catalog.
    pub fn catalog(root: &str) -> Self {
        Self::new().label(CONFIGS, root)
    }

    /// Adds a layer on top of the others.
    pub fn layer(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Sets a label of the configuration.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Builds the image with its manifest, configuration and layers.
    pub fn build(&self) -> Image {
        let packed: Vec<_> = self.layers.iter().map(Layer::pack).collect();
        let config = Bytes::from(self.config(&packed).to_string());
        let manifest = manifest(&config, &packed);
        let mut image = Image::of_manifest(MANIFEST, manifest.to_string().into());
        image.layers = packed.iter().map(|layer| digest(&layer.bytes)).collect();
        let blobs = packed.into_iter().map(|layer| layer.bytes).chain([config]);
        image
            .blobs
            .extend(blobs.map(|bytes| (digest(&bytes), bytes)));
        image
    }

    fn config(&self, layers: &[Packed]) -> Value {
        let diff_ids: Vec<_> = layers.iter().map(|layer| &layer.diff_id).collect();
        json!({
            "os": "linux",
            "architecture": "amd64",
            "config": {"Labels": self.labels},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        })
    }
}

fn manifest(config: &Bytes, layers: &[Packed]) -> Value {
    let layer_type =
        |layer: &Packed| format!("application/vnd.oci.image.layer.v1.tar{}", layer.suffix);
    let layers: Vec<_> = layers
        .iter()
        .map(|layer| descriptor(&layer_type(layer), &layer.bytes))
        .collect();
    let config = descriptor("application/vnd.oci.image.config.v1+json", config);
    json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers})
}

fn descriptor(media_type: &str, bytes: &Bytes) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}
