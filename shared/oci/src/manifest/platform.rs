//! The choice of an image from an index.

use std::fmt;

use super::{ImageDescriptor, ImageError, ImageIndex, manifest_of};
use crate::digest::{BlobRef, Digest};
use crate::path::shown;

/// An operating system and a CPU, as an index names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPlatform {
    /// Operating system in Go's words, such as `linux`.
    pub os: String,
    /// CPU in Go's words, such as `amd64`.
    pub architecture: String,
}

impl Default for TargetPlatform {
    fn default() -> Self {
        Self {
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
        }
    }
}

impl fmt::Display for TargetPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

/// Returns the digest and the size of the image for `wanted`. An index with one image gives that image, whatever its platform: a
/// catalog is only data, and many are built for one platform.
///
/// # Errors
/// An index of other platforms, and a malformed entry.
pub fn choose_platform(index: &ImageIndex, digest: &Digest, wanted: &TargetPlatform) -> Result<BlobRef, ImageError> {
    let images: Vec<_> = index.manifests.iter().filter(|entry| is_image(entry)).collect();
    let fitting = images.iter().find(|entry| name(entry) == wanted.to_string());
    let ((Some(chosen), _) | (None, [chosen])) = (fitting, images.as_slice()) else {
        return Err(absent(&images, digest, wanted));
    };
    manifest_of(digest, chosen)
}

/// Returns false for the attestations that build tools add to an index as manifests of an unknown platform.
fn is_image(entry: &ImageDescriptor) -> bool {
    let attests = |notes: &std::collections::BTreeMap<_, _>| notes.contains_key("vnd.docker.reference.type");
    entry.artifact_type.is_none()
        && !entry.annotations.as_ref().is_some_and(attests)
        && name(entry) != "unknown/unknown"
}

fn name(entry: &ImageDescriptor) -> String {
    let platform = entry.platform.as_ref();
    platform.map_or_else(
        || "any".to_owned(),
        |platform| format!("{}/{}", platform.os, platform.architecture),
    )
}

fn absent(images: &[&ImageDescriptor], digest: &Digest, wanted: &TargetPlatform) -> ImageError {
    let names: Vec<_> = images.iter().map(|entry| name(entry)).collect();
    let found = if names.is_empty() {
        "no image at all".to_owned()
    } else {
        shown(names.join(", ").as_bytes())
    };
    ImageError::Platform {
        index: digest.clone(),
        wanted: wanted.to_string(),
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(platforms: &[&str], wanted: &str) -> Result<usize, ImageError> {
        let digests: Vec<_> = platforms
            .iter()
            .enumerate()
            .map(|(at, _)| Digest::of(&[at as u8]))
            .collect();
        let entries = platforms.iter().zip(&digests).map(|(platform, digest)| {
            let (os, architecture) = platform.split_once('/').unwrap();
            serde_json::json!({
                "mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 1, "digest": digest,
                "platform": {"os": os, "architecture": architecture},
            })
        });
        let body = serde_json::json!({"schemaVersion": 2, "manifests": entries.collect::<Vec<_>>()});
        let (os, architecture) = wanted.split_once('/').unwrap();
        let wanted = TargetPlatform {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
        };
        let chosen = choose_platform(&serde_json::from_value(body).unwrap(), &Digest::of(b"index"), &wanted)?;
        Ok(digests.iter().position(|digest| *digest == chosen.digest).unwrap())
    }

    #[test]
    fn descriptor_of_chosen_image_is_checked() {
        let wanted = TargetPlatform {
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
        };
        let digest = Digest::of(b"image");
        let chosen = |media_type: &str, size: i64| {
            let entry = serde_json::json!({"mediaType": media_type, "size": size, "digest": digest});
            let index = serde_json::json!({"schemaVersion": 2, "manifests": [entry]});
            let index = serde_json::from_value(index).unwrap();
            choose_platform(&index, &Digest::of(b"index"), &wanted).map_err(|error| error.to_string())
        };
        for media_type in ["", crate::media_type::MANIFEST, crate::media_type::INDEX] {
            assert_eq!(chosen(media_type, 5).unwrap().size, 5);
        }
        for (media_type, size, says) in [
            (crate::media_type::MANIFEST, -5, "the size -5"),
            (
                crate::media_type::LAYER,
                5,
                "the media type application/vnd.oci.image.layer.v1.tar+gzip",
            ),
        ] {
            let error = chosen(media_type, size).unwrap_err();
            assert!(error.contains(says) && error.contains(digest.as_str()), "{error}");
        }
    }

    #[test]
    fn choose_prefers_platform_and_accepts_single_image() {
        assert_eq!(pick(&["linux/arm64", "linux/amd64"], "linux/amd64").unwrap(), 1);
        assert_eq!(pick(&["linux/s390x", "unknown/unknown"], "linux/amd64").unwrap(), 0);
        let error = pick(&["linux/arm64", "linux/s390x"], "linux/amd64")
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("no image for linux/amd64; it has linux/arm64, linux/s390x"),
            "{error}"
        );
        assert!(
            pick(&[], "linux/amd64")
                .unwrap_err()
                .to_string()
                .contains("no image at all")
        );
    }
}
