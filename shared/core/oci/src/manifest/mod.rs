//! Manifests, indexes and configs: parsing and choosing, without requests.

mod config;
mod error;
mod platform;
mod signature;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{BlobRef, Digest, ImageLimits, NamedLimit, media_type, shown};

pub use config::{ImageContent, content_root};
pub use error::ImageError;
pub use platform::{TargetPlatform, choose_platform};
pub use signature::SignatureManifest;

/// Annotation that holds the tag of an image in a layout (OCI image specification, "Annotations").
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Media types of an index, of OCI and of Docker.
const INDEX_TYPES: [&str; 2] = [
    media_type::INDEX,
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// Media types of an image manifest, of OCI and of Docker.
const IMAGE_TYPES: [&str; 2] = [
    media_type::MANIFEST,
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// Manifest or index, whichever a digest names.
#[derive(Debug)]
pub enum ImageDocument {
    /// A list of images for platforms.
    Index(ImageIndex),
    /// One image.
    Image(ImageManifest),
}

/// An image index. Its entries are checked when one of them is chosen.
#[derive(Debug, Deserialize)]
pub struct ImageIndex {
    /// Entries in the order of the document.
    pub manifests: Vec<ImageDescriptor>,
}

/// Entry of an index or a manifest, as written.
///
/// Takes an entry without a media type too, and checks digest and size when it is used. The README
/// says why it is not that of `oci-client`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageDescriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: i64,
    platform: Option<TargetPlatform>,
    /// Notes of any kind, such as the tag of an image in a layout.
    annotations: Option<BTreeMap<String, String>>,
    artifact_type: Option<String>,
}

#[derive(Deserialize)]
struct WrittenManifest {
    config: ImageDescriptor,
    layers: Vec<ImageDescriptor>,
}

/// An image manifest with valid digests and sizes.
#[derive(Debug)]
pub struct ImageManifest {
    /// Config of the image.
    pub config: BlobRef,
    /// Layers from the bottom up, as in the manifest.
    pub layers: Vec<BlobRef>,
}

/// The fields that tell the kind of a manifest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestOutline {
    schema_version: Option<u64>,
    media_type: Option<String>,
    artifact_type: Option<String>,
    manifests: Option<serde::de::IgnoredAny>,
    config: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
    fs_layers: Option<serde::de::IgnoredAny>,
}

/// Parses the manifest or index `digest`. The media type may be missing, because umoci leaves it
/// out.
///
/// # Errors
/// Other documents, and manifests that are malformed or exceed a limit.
pub fn parse_manifest(
    digest: &Digest,
    body: &[u8],
    limits: &ImageLimits,
) -> Result<ImageDocument, ImageError> {
    let outline: ManifestOutline = parse_document("manifest", digest, body)?;
    let refused = |problem: String| Err(ImageError::of_manifest(digest, problem));
    if outline.schema_version == Some(1) || outline.fs_layers.is_some() {
        let problem = "is a Docker schema 1 manifest, which is not supported: push the image again with a current tool";
        return refused(problem.to_owned());
    }
    // Another version may give its fields another meaning. A missing one is accepted, as container
    // engines accept it.
    if let Some(version) = outline.schema_version
        && version != 2
    {
        return refused(format!(
            "has the schema version {version}, which is not supported: only 2 is"
        ));
    }
    if outline.is_ambiguous() {
        let problem =
            "is an image manifest and an index at once: readers could disagree about its content";
        return refused(problem.to_owned());
    }
    if outline.manifests.is_some() {
        return parse_document("index", digest, body).map(ImageDocument::Index);
    }
    if outline.layers.is_some() {
        return image(digest, &outline, body, limits).map(ImageDocument::Image);
    }
    refused(match outline.artifact_type.or(outline.media_type) {
        Some(kind) => not_an_image(&kind),
        None => "is neither an image manifest nor an index".to_owned(),
    })
}

impl ManifestOutline {
    /// Returns true if one reader could take the document for an index and another one for an
    /// image, by its fields or by its media type (CVE-2021-41190): then what was signed or scanned
    /// need not be what is read.
    fn is_ambiguous(&self) -> bool {
        let kind = self.media_type.as_deref().unwrap_or_default();
        let is_image =
            self.layers.is_some() || self.config.is_some() || IMAGE_TYPES.contains(&kind);
        let is_index = self.manifests.is_some() || INDEX_TYPES.contains(&kind);
        is_image && is_index
    }
}

impl ImageDescriptor {
    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// Returns the digest and size of an entry whose media type fits.
    fn blob_of(&self, holder: &Digest, fits: fn(&str) -> bool) -> Result<BlobRef, ImageError> {
        let blob = self.blob(holder)?;
        if fits(&self.media_type) {
            return Ok(blob);
        }
        let problem = format!(
            "names {} with the media type {}, which is not supported",
            blob.digest,
            shown(self.media_type.as_bytes())
        );
        Err(ImageError::of_manifest(holder, problem))
    }

    /// Returns the digest and size that the entry declares. `holder` names its manifest or index in
    /// errors.
    ///
    /// # Errors
    /// A malformed digest, and a negative size.
    pub fn blob(&self, holder: &impl ToString) -> Result<BlobRef, ImageError> {
        let digest: Digest = self.digest.parse().map_err(|source| ImageError::Digest {
            manifest: holder.to_string(),
            source,
        })?;
        match u64::try_from(self.size) {
            Ok(size) => Ok(BlobRef { digest, size }),
            Err(_) => {
                let problem = format!("names {digest} with the negative size {}", self.size);
                Err(ImageError::of_manifest(holder, problem))
            }
        }
    }
}

impl ImageIndex {
    /// Returns the digest of the image with this tag in an image layout, or of its only image.
    /// `digest` is that of the index.
    ///
    /// # Errors
    /// [`ImageError::NoTag`] for none or several, and a malformed entry.
    pub fn tagged(&self, tag: Option<&str>, digest: &Digest) -> Result<Digest, ImageError> {
        let mut fitting = Vec::new();
        for entry in &self.manifests {
            if tag.is_none() || entry.annotation(REF_NAME) == tag {
                fitting.push(entry);
            }
        }
        if let [entry] = fitting[..] {
            return Ok(entry.blob_of(digest, is_manifest)?.digest);
        }
        let mut tags = Vec::new();
        for entry in &self.manifests {
            let tag = entry.annotation(REF_NAME);
            tags.push(tag.unwrap_or("(no tag)").to_owned());
        }
        Err(ImageError::NoTag {
            wanted: match tag {
                Some(tag) => format!("tagged {tag}"),
                None => "without a tag that is the only one".to_owned(),
            },
            found: listed(&tags, "none"),
        })
    }
}

/// Returns what an index has, for errors, or `none` if it is empty.
fn listed(entries: &[String], none: &str) -> String {
    if entries.is_empty() {
        return none.to_owned();
    }
    shown(entries.join(", ").as_bytes())
}

/// Returns the problem of an artifact, such as a helm chart or a signature. `kind` is its artifact
/// type or config media type.
fn not_an_image(kind: &str) -> String {
    format!(
        "is not a container image but an artifact ({})",
        shown(kind.as_bytes())
    )
}

fn image(
    digest: &Digest,
    outline: &ManifestOutline,
    body: &[u8],
    limits: &ImageLimits,
) -> Result<ImageManifest, ImageError> {
    let manifest: WrittenManifest = parse_document("manifest", digest, body)?;
    if !is_image_config(&manifest.config.media_type) {
        let config_type = &manifest.config.media_type;
        let kind = outline.artifact_type.as_ref().unwrap_or(config_type);
        return Err(ImageError::of_manifest(digest, not_an_image(kind)));
    }
    let place = || format!("manifest {digest}");
    NamedLimit::new("layers", limits.layers).check(manifest.layers.len() as u64, place)?;
    let config = manifest.config.blob(digest)?;
    let mut layers = Vec::new();
    let mut total = 0_u64;
    for descriptor in &manifest.layers {
        let layer = descriptor.blob_of(digest, is_layer)?;
        total = total.saturating_add(layer.size);
        layers.push(layer);
    }
    NamedLimit::new("compressedBytes", limits.compressed_bytes).check(total, place)?;
    Ok(ImageManifest { config, layers })
}

fn is_manifest(media_type: &str) -> bool {
    media_type.is_empty() || INDEX_TYPES.contains(&media_type) || IMAGE_TYPES.contains(&media_type)
}

fn is_image_config(media_type: &str) -> bool {
    media_type.is_empty()
        || media_type.starts_with("application/vnd.docker.container.image.")
        || media_type.starts_with("application/vnd.oci.image.config.")
}

/// Returns true for tar archives. The compression in the type does not matter, because the bytes
/// decide about it. Foreign layers are included: they are read if the registry has them.
fn is_layer(media_type: &str) -> bool {
    let Some((kind, packed)) = media_type.rsplit_once(".tar") else {
        return media_type.is_empty();
    };
    kind.starts_with("application/vnd.")
        && !packed.contains("encrypted")
        && (packed.is_empty() || packed.starts_with(['+', '.']))
}

/// Parses a JSON document that belongs to an image. `digest` names it in errors.
///
/// # Errors
/// Anything but JSON of the wanted shape.
pub fn parse_document<'a, T: Deserialize<'a>>(
    what: &'static str,
    digest: &impl ToString,
    body: &'a [u8],
) -> Result<T, ImageError> {
    serde_json::from_slice(body).map_err(|source| ImageError::Json {
        what,
        digest: digest.to_string(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &serde_json::Value) -> Result<ImageDocument, ImageError> {
        let body = body.to_string();
        parse_manifest(
            &Digest::of(body.as_bytes()),
            body.as_bytes(),
            &ImageLimits::default(),
        )
    }

    fn manifest(config: &str, layer: &str, size: i64) -> serde_json::Value {
        let digest = Digest::of(b"x").to_string();
        json!({
            "schemaVersion": 2,
            "config": {"mediaType": config, "digest": digest, "size": 2},
            "layers": [{"mediaType": layer, "digest": digest, "size": size}],
        })
    }

    const OCI: &str = "application/vnd.oci.image.config.v1+json";
    const DOCKER: &str = "application/vnd.docker.container.image.v1+json";
    const TAR: &str = "application/vnd.oci.image.layer.v1.tar+zstd";

    #[test]
    fn parse_accepts_documents_without_media_type_or_schema_version() {
        let mut without_version = manifest(OCI, TAR, 1);
        without_version
            .as_object_mut()
            .unwrap()
            .remove("schemaVersion");
        let mut of_docker = manifest(
            DOCKER,
            "application/vnd.docker.image.rootfs.diff.tar.gzip",
            1,
        );
        of_docker["mediaType"] = IMAGE_TYPES[1].into();
        for image in [manifest(OCI, TAR, 1), of_docker, without_version] {
            assert!(matches!(read(&image), Ok(ImageDocument::Image(_))));
        }
        for index in [
            json!({"schemaVersion": 2, "manifests": []}),
            json!({"manifests": []}),
        ] {
            assert!(matches!(read(&index), Ok(ImageDocument::Index(_))));
        }
    }

    #[test]
    fn parse_names_kind_of_other_documents() {
        let helm = "application/vnd.cncf.helm.config.v1+json";
        let artifact = format!("artifact ({helm})");
        for (body, says) in [
            (json!({"schemaVersion": 1, "fsLayers": []}), "schema 1"),
            (manifest(helm, TAR, 1), &artifact),
            (manifest(OCI, "application/vnd.in-toto+json", 1), "in-toto"),
            (manifest(OCI, &format!("{TAR}+encrypted"), 1), "encrypted"),
            (manifest(OCI, TAR, -1), "negative"),
            (json!({"schemaVersion": 2}), "neither"),
            (
                json!({"schemaVersion": 2, "layers": [], "manifests": []}),
                "at once",
            ),
            (
                json!({"schemaVersion": 2, "config": {}, "manifests": []}),
                "at once",
            ),
            (
                json!({"mediaType": media_type::INDEX, "layers": []}),
                "at once",
            ),
            (
                json!({"mediaType": media_type::MANIFEST, "manifests": []}),
                "at once",
            ),
            (
                json!({"schemaVersion": 3, "manifests": []}),
                "schema version 3",
            ),
            (
                json!({"schemaVersion": 0, "layers": []}),
                "schema version 0",
            ),
            (json!({"schemaVersion": 2, "layers": 1}), "cannot be parsed"),
        ] {
            let error = read(&body).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
