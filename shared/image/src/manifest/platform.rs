//! Which image of an index is read.

use oci_client::manifest::{ImageIndexEntry, OciImageIndex};

use crate::digest::Digest;
use crate::error::ImageError;
use crate::path::shown;
use crate::settings::Platform;

/// The digest of the image for `wanted`. A lone image is taken whatever its platform:
/// a catalog is data, and many are built for one platform only.
pub(crate) fn choose(index: &OciImageIndex, digest: &Digest, wanted: &Platform) -> Result<Digest, ImageError> {
    let images: Vec<_> = index.manifests.iter().filter(|entry| is_image(entry)).collect();
    let fitting = images.iter().find(|entry| name(entry) == wanted.to_string());
    let ((Some(chosen), _) | (None, [chosen])) = (fitting, images.as_slice()) else {
        return Err(absent(&images, digest, wanted));
    };
    let parsed = chosen.digest.parse();
    parsed.map_err(|source| ImageError::Digest {
        manifest: digest.clone(),
        source,
    })
}

/// Build tools add attestations to an index, as manifests of an unknown platform.
fn is_image(entry: &ImageIndexEntry) -> bool {
    let attests = |notes: &std::collections::BTreeMap<_, _>| notes.contains_key("vnd.docker.reference.type");
    entry.artifact_type.is_none()
        && !entry.annotations.as_ref().is_some_and(attests)
        && name(entry) != "unknown/unknown"
}

fn name(entry: &ImageIndexEntry) -> String {
    let platform = entry.platform.as_ref();
    platform.map_or_else(
        || "any".to_owned(),
        |platform| format!("{}/{}", platform.os, platform.architecture),
    )
}

fn absent(images: &[&ImageIndexEntry], digest: &Digest, wanted: &Platform) -> ImageError {
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
        let wanted = Platform {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
        };
        let chosen = choose(&serde_json::from_value(body).unwrap(), &Digest::of(b"index"), &wanted)?;
        Ok(digests.iter().position(|digest| *digest == chosen).unwrap())
    }

    #[test]
    fn the_platform_is_explicit_and_a_lone_image_fits_all() {
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
