//! Builds an image from layers and labels.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::image::layer::Packed;
use crate::image::{Image, Layer, digest};

const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";

/// Family of media types in a manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Media types of the OCI image specification.
    #[default]
    Oci,
    /// Media types of OCI, without a `mediaType` in the manifest, as umoci writes it.
    Untyped,
    /// Media types of Docker schema 2.
    Docker,
}

/// Builder of an image. The default has no layers and no labels and is in OCI format.
///
/// ```
/// use catalog_mirror_testkit::{ImageBuilder, Layer};
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
    format: Format,
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

    /// Sets the family of media types. Default OCI.
    pub fn format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Builds the image with its manifest, configuration and layers.
    pub fn build(&self) -> Image {
        let packed: Vec<_> = self.layers.iter().map(Layer::pack).collect();
        let config = Bytes::from(self.config(&packed).to_string());
        let manifest = self.manifest(&config, &packed);
        let [media_type, ..] = self.format.types();
        let mut image = Image::of_manifest(media_type, manifest.to_string().into());
        image.layers = packed.iter().map(|layer| digest(&layer.bytes)).collect();
        let blobs = packed.into_iter().map(|layer| layer.bytes).chain([config]);
        image.blobs.extend(blobs.map(|bytes| (digest(&bytes), bytes)));
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

    fn manifest(&self, config: &Bytes, layers: &[Packed]) -> Value {
        let [media_type, config_type, layer_type, separator] = self.format.types();
        let layers: Vec<_> = layers
            .iter()
            .map(|layer| match layer.suffix {
                "" => descriptor(layer_type, &layer.bytes),
                suffix => descriptor(&format!("{layer_type}{separator}{suffix}"), &layer.bytes),
            })
            .collect();
        let config = descriptor(config_type, config);
        let mut manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
        if self.format != Format::Untyped {
            manifest["mediaType"] = json!(media_type);
        }
        manifest
    }
}

impl Format {
    /// Returns the media types of manifest, configuration and plain layer, and what comes before the compression of a layer.
    const fn types(self) -> [&'static str; 4] {
        match self {
            Self::Docker => [
                "application/vnd.docker.distribution.manifest.v2+json",
                "application/vnd.docker.container.image.v1+json",
                "application/vnd.docker.image.rootfs.diff.tar",
                ".",
            ],
            Self::Oci | Self::Untyped => [
                "application/vnd.oci.image.manifest.v1+json",
                "application/vnd.oci.image.config.v1+json",
                "application/vnd.oci.image.layer.v1.tar",
                "+",
            ],
        }
    }
}

fn descriptor(media_type: &str, bytes: &Bytes) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}
