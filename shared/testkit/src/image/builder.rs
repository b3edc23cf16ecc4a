//! From layers and labels to an image.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::image::layer::Packed;
use crate::image::{Image, Layer, digest};

const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";

/// Which family of media types a manifest uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// OCI.
    #[default]
    Oci,
    /// OCI without a `mediaType` in the manifest, as umoci writes it.
    Untyped,
    /// Docker schema 2.
    Docker,
}

/// An image under construction.
#[derive(Clone, Debug, Default)]
pub struct ImageBuilder {
    layers: Vec<Layer>,
    labels: BTreeMap<String, String>,
    format: Format,
    config_type: Option<String>,
}

impl ImageBuilder {
    /// No layers, no labels, OCI.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the label that makes `root` the catalog.
    pub fn catalog(root: &str) -> Self {
        Self::new().label(CONFIGS, root)
    }

    /// Puts a layer on top.
    #[must_use]
    pub fn layer(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Chooses the media types.
    #[must_use]
    pub fn format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Declares the config as something else, as artifacts do.
    #[must_use]
    pub fn config_type(self, media_type: &str) -> Self {
        Self {
            config_type: Some(media_type.to_owned()),
            ..self
        }
    }

    /// The finished image.
    pub fn build(&self) -> Image {
        let packed: Vec<_> = self.layers.iter().map(Layer::pack).collect();
        let config = Bytes::from(self.config(&packed).to_string());
        let manifest = self.manifest(&config, &packed);
        let mut image = Image::of_manifest(self.media_type(), manifest.to_string().into());
        image.layers = packed.iter().map(|layer| digest(&layer.bytes)).collect();
        image.blobs.insert(digest(&config), config);
        image
            .blobs
            .extend(packed.into_iter().map(|layer| (digest(&layer.bytes), layer.bytes)));
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
        let layers: Vec<_> = layers
            .iter()
            .map(|layer| descriptor(&self.layer_type(layer), &layer.bytes))
            .collect();
        let config = descriptor(
            self.config_type.as_deref().unwrap_or(self.default_config_type()),
            config,
        );
        let mut manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
        if self.format != Format::Untyped {
            manifest["mediaType"] = json!(self.media_type());
        }
        manifest
    }

    fn media_type(&self) -> &'static str {
        match self.format {
            Format::Docker => "application/vnd.docker.distribution.manifest.v2+json",
            Format::Oci | Format::Untyped => "application/vnd.oci.image.manifest.v1+json",
        }
    }

    fn default_config_type(&self) -> &'static str {
        match self.format {
            Format::Docker => "application/vnd.docker.container.image.v1+json",
            Format::Oci | Format::Untyped => "application/vnd.oci.image.config.v1+json",
        }
    }

    fn layer_type(&self, layer: &Packed) -> String {
        if let Some(media_type) = &layer.media_type {
            return media_type.clone();
        }
        let (base, separator) = match self.format {
            Format::Docker => ("application/vnd.docker.image.rootfs.diff.tar", "."),
            Format::Oci | Format::Untyped => ("application/vnd.oci.image.layer.v1.tar", "+"),
        };
        if layer.suffix.is_empty() {
            base.to_owned()
        } else {
            format!("{base}{separator}{}", layer.suffix)
        }
    }
}

fn descriptor(media_type: &str, bytes: &Bytes) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}
