//! Manifests, indexes and configs: parsing and choosing, without fetching.

mod config;
mod platform;

use oci_client::manifest::{OciDescriptor, OciImageIndex, OciImageManifest};
use serde::Deserialize;

use crate::digest::Digest;
use crate::error::{Error, ImageError, Limit};
use crate::limits::Limits;
use crate::path::shown;

pub(crate) use config::root;
pub(crate) use platform::choose;

/// What a digest may turn out to name.
#[derive(Debug)]
pub(crate) enum Document {
    Index(OciImageIndex),
    Image(Image),
}

/// An image manifest, checked.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) config: Blob,
    /// From the bottom up, as the manifest lists them.
    pub(crate) layers: Vec<Blob>,
}

/// A blob as its manifest declares it. `urls` are dropped on purpose: a manifest must not send us elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

/// Enough of any manifest to tell what it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    schema_version: Option<u64>,
    media_type: Option<String>,
    artifact_type: Option<String>,
    manifests: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
    fs_layers: Option<serde::de::IgnoredAny>,
}

/// Parses the manifest or index `digest`. Its media type may be missing, as umoci leaves it out.
pub(crate) fn parse(digest: &Digest, body: &[u8], limits: &Limits) -> Result<Document, Error> {
    let outline: Outline = json("manifest", digest, body)?;
    if outline.schema_version == Some(1) || outline.fs_layers.is_some() {
        return Err(ImageError::Schema1(digest.clone()).into());
    }
    match (outline.manifests.is_some(), outline.layers.is_some()) {
        (true, false) => Ok(Document::Index(json("index", digest, body)?)),
        (false, true) => image(digest, &outline, body, limits).map(Document::Image),
        _ => Err(unknown(digest, outline).into()),
    }
}

fn unknown(digest: &Digest, outline: Outline) -> ImageError {
    match outline.artifact_type.or(outline.media_type) {
        Some(kind) => ImageError::Artifact {
            digest: digest.clone(),
            kind: shown(kind.as_bytes()),
        },
        None => ImageError::Unknown(digest.clone()),
    }
}

fn image(digest: &Digest, outline: &Outline, body: &[u8], limits: &Limits) -> Result<Image, Error> {
    let manifest: OciImageManifest = json("manifest", digest, body)?;
    if !is_image_config(&manifest.config.media_type) {
        let kind = outline.artifact_type.clone().unwrap_or(manifest.config.media_type);
        return Err(ImageError::Artifact {
            digest: digest.clone(),
            kind: shown(kind.as_bytes()),
        }
        .into());
    }
    if manifest.layers.len() as u64 > limits.layers {
        return Err(limit("layers", limits.layers, digest));
    }
    let config = blob(digest, &manifest.config)?;
    let layers = manifest
        .layers
        .iter()
        .map(|layer| layer_blob(digest, layer))
        .collect::<Result<Vec<_>, _>>()?;
    let total = layers.iter().try_fold(0u64, |sum, layer| sum.checked_add(layer.size));
    if total.is_none_or(|total| total > limits.compressed_bytes) {
        return Err(limit("compressedBytes", limits.compressed_bytes, digest));
    }
    Ok(Image { config, layers })
}

fn limit(name: &'static str, limit: u64, digest: &Digest) -> Error {
    Error::Limit(Limit {
        name,
        limit,
        place: format!("manifest {digest}"),
    })
}

fn is_image_config(media_type: &str) -> bool {
    media_type.is_empty()
        || media_type.starts_with("application/vnd.docker.container.image.")
        || media_type.starts_with("application/vnd.oci.image.config.")
}

fn layer_blob(manifest: &Digest, layer: &OciDescriptor) -> Result<Blob, ImageError> {
    let blob = blob(manifest, layer)?;
    if is_layer(&layer.media_type) {
        Ok(blob)
    } else {
        Err(ImageError::LayerType {
            layer: blob.digest,
            media_type: shown(layer.media_type.as_bytes()),
        })
    }
}

/// A tar archive, whatever it is compressed with: that is found out by looking. Foreign layers too, if the registry has them.
fn is_layer(media_type: &str) -> bool {
    let Some((kind, packed)) = media_type.rsplit_once(".tar") else {
        return media_type.is_empty();
    };
    kind.starts_with("application/vnd.")
        && !packed.contains("encrypted")
        && (packed.is_empty() || packed.starts_with(['+', '.']))
}

fn blob(manifest: &Digest, descriptor: &OciDescriptor) -> Result<Blob, ImageError> {
    let size = u64::try_from(descriptor.size).map_err(|_| ImageError::NegativeSize(manifest.clone()))?;
    let digest = descriptor.digest.parse();
    let digest = digest.map_err(|source| ImageError::Digest {
        manifest: manifest.clone(),
        source,
    })?;
    Ok(Blob { digest, size })
}

pub(crate) fn json<'a, T: Deserialize<'a>>(
    what: &'static str,
    digest: &Digest,
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

    fn read(body: &serde_json::Value) -> Result<Document, Error> {
        let body = body.to_string();
        parse(&Digest::of(body.as_bytes()), body.as_bytes(), &Limits::default())
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
    fn oci_and_docker_manifests_parse_without_media_type() {
        for config in [OCI, DOCKER] {
            assert!(matches!(read(&manifest(config, TAR, 1)), Ok(Document::Image(_))));
        }
        assert!(matches!(
            read(&json!({"schemaVersion": 2, "manifests": []})),
            Ok(Document::Index(_))
        ));
    }

    #[test]
    fn everything_else_says_what_it_is() {
        let helm = "application/vnd.cncf.helm.config.v1+json";
        for (body, says) in [
            (json!({"schemaVersion": 1, "fsLayers": []}), "schema 1"),
            (
                manifest(helm, TAR, 1),
                "artifact (application/vnd.cncf.helm.config.v1+json)",
            ),
            (manifest(OCI, "application/vnd.in-toto+json", 1), "in-toto"),
            (
                manifest(OCI, "application/vnd.oci.image.layer.v1.tar+gzip+encrypted", 1),
                "encrypted",
            ),
            (manifest(OCI, TAR, -1), "negative"),
            (json!({"schemaVersion": 2}), "neither"),
            (json!({"schemaVersion": 2, "layers": [], "manifests": []}), "neither"),
            (json!({"schemaVersion": 2, "layers": 1}), "cannot be parsed"),
        ] {
            let error = read(&body).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn the_limits_pass_exactly() {
        let body = manifest(OCI, TAR, 10).to_string();
        let digest = Digest::of(body.as_bytes());
        let limits = |layers, compressed_bytes| Limits {
            layers,
            compressed_bytes,
            ..Limits::default()
        };
        assert!(parse(&digest, body.as_bytes(), &limits(1, 10)).is_ok());
        for (limits, name) in [(limits(0, 10), "layers"), (limits(1, 9), "compressedBytes")] {
            let error = parse(&digest, body.as_bytes(), &limits).unwrap_err();
            assert!(matches!(error, Error::Limit(Limit { name: found, .. }) if found == name));
        }
    }
}
