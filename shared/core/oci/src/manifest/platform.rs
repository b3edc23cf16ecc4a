//! The choice of an image from an index.

use std::fmt;

use serde::Deserialize;

use super::{ImageDescriptor, ImageError, ImageIndex, is_manifest, listed};
use crate::{BlobRef, Digest};

/// An operating system and a CPU, as an index names them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TargetPlatform {
    /// Operating system in Go's words, such as `linux`.
    pub os: String,
    /// CPU in Go's words, such as `amd64`.
    pub architecture: String,
    /// Variant of the CPU, such as `v7`. Empty for the usual one.
    #[serde(default)]
    pub variant: String,
}

/// Variants of CPUs that containers/image knows, from the most capable to the most compatible one.
const VARIANTS: [(&str, &[&str]); 2] = [("arm", &["v8", "v7", "v6", "v5"]), ("arm64", &["v8"])];

/// Annotation of an image whose layers are compressed with zstd, while another one has the same
/// content with gzip.
const ZSTD: &str = "io.github.containers.compression.zstd";

impl Default for TargetPlatform {
    fn default() -> Self {
        Self {
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
            variant: String::new(),
        }
    }
}

impl fmt::Display for TargetPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        if self.variant.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", self.variant)
    }
}

impl TargetPlatform {
    /// Returns the variants that fit, the best one first: all of the CPU if none is wanted, else
    /// those that it can run.
    fn variants(&self) -> Vec<&str> {
        let mut known: &[&str] = &[];
        for (architecture, variants) in VARIANTS {
            if architecture == self.architecture {
                known = variants;
            }
        }
        let wanted = self.variant.as_str();
        if wanted.is_empty() {
            return [&[""], known].concat();
        }
        match known.iter().position(|variant| *variant == wanted) {
            Some(at) => [&known[at..], &[""]].concat(),
            None => vec![wanted, ""],
        }
    }
}

/// Returns the digest and the size of the image for `wanted`, as containers/image chooses it. An
/// index with one image gives that image, whatever its platform: a catalog is only data, and many
/// are built for one platform.
///
/// # Errors
/// An index of other platforms, and a malformed entry.
pub fn choose_platform(
    index: &ImageIndex,
    digest: &Digest,
    wanted: &TargetPlatform,
) -> Result<BlobRef, ImageError> {
    let mut images = Vec::new();
    // Those that fit, each with its rank: the lowest one is chosen.
    let mut fitting = Vec::new();
    let variants = wanted.variants();
    for entry in &index.manifests {
        if !is_image(entry) {
            continue;
        }
        images.push(entry);
        if let Some(rank) = rank(entry, wanted, &variants) {
            let is_zstd = entry.annotation(ZSTD) == Some("true");
            fitting.push(((rank, !is_zstd), entry));
        }
    }
    let best = fitting.iter().min_by_key(|(rank, _)| *rank);
    let chosen = match (best, &images[..]) {
        (Some((_, entry)), _) => entry,
        (None, [only]) => only,
        (None, _) => {
            let names: Vec<String> = images.iter().map(|entry| name(entry)).collect();
            return Err(ImageError::Platform {
                index: digest.clone(),
                wanted: wanted.to_string(),
                found: listed(&names, "no image at all"),
            });
        }
    };
    chosen.blob_of(digest, is_manifest)
}

/// Returns the rank of an image among those that fit, the lowest first; `None` if it does not fit.
fn rank(entry: &ImageDescriptor, wanted: &TargetPlatform, variants: &[&str]) -> Option<usize> {
    let Some(found) = &entry.platform else {
        // Comes after all that have a fitting platform.
        return Some(variants.len());
    };
    if found.os != wanted.os || found.architecture != wanted.architecture {
        return None;
    }
    let mut variants = variants.iter();
    variants.position(|variant| *variant == found.variant)
}

/// Returns false for the attestations that build tools add to an index as manifests of an unknown
/// platform.
fn is_image(entry: &ImageDescriptor) -> bool {
    entry.artifact_type.is_none()
        && entry.annotation("vnd.docker.reference.type").is_none()
        && name(entry) != "unknown/unknown"
}

fn name(entry: &ImageDescriptor) -> String {
    match &entry.platform {
        Some(platform) => platform.to_string(),
        None => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::media_type;

    /// Returns a platform such as `linux/arm/v7` as an index has it.
    fn platform(text: &str) -> Value {
        let names = ["os", "architecture", "variant"].into_iter();
        names.zip(text.split('/')).collect()
    }

    fn choose(entries: &[Value], wanted: &str) -> Result<BlobRef, String> {
        let index =
            serde_json::from_value(json!({"schemaVersion": 2, "manifests": entries})).unwrap();
        let wanted = serde_json::from_value(platform(wanted)).unwrap();
        choose_platform(&index, &Digest::of(b"index"), &wanted).map_err(|error| error.to_string())
    }

    #[test]
    fn descriptor_of_chosen_image_is_checked() {
        let digest = Digest::of(b"image");
        let chosen = |media_type: &str, size: i64| {
            let entry = json!({"mediaType": media_type, "size": size, "digest": digest});
            choose(&[entry], "linux/amd64")
        };
        for media_type in ["", media_type::MANIFEST, media_type::INDEX] {
            assert_eq!(chosen(media_type, 5).unwrap().size, 5);
        }
        let layer = format!("the media type {}", media_type::LAYER);
        for (media_type, size, says) in [
            (media_type::MANIFEST, -5, "the negative size -5"),
            (media_type::LAYER, 5, &layer),
        ] {
            let error = chosen(media_type, size).unwrap_err();
            assert!(
                error.contains(says) && error.contains(digest.as_str()),
                "{error}"
            );
        }
    }

    /// Wanted platform, those of an index, and the position of the one that is chosen, or the end
    /// of the error. The rows are facts about containers/image (`internal/pkg/platform`,
    /// `internal/manifest`).
    const CHOICES: &str = "\
linux/amd64 / linux/amd64/v3 linux/amd64 => 1
linux/amd64 / linux/amd64/v2 linux/amd64/v3 => it has linux/amd64/v2, linux/amd64/v3
linux/amd64/v3 / linux/amd64 linux/amd64/v3 => 1
linux/amd64/v3 / linux/amd64/v2 linux/amd64 => 1
linux/arm / linux/arm/v5 linux/arm/v8 linux/arm => 2
linux/arm / linux/arm/v5 linux/arm/v7 linux/arm/v8 linux/arm/v6 => 2
linux/arm / linux/arm/v5 linux/arm/v6 linux/arm/v7 => 2
linux/arm/v6 / linux/arm linux/arm/v7 linux/arm/v5 linux/arm/v6 => 3
linux/arm/v6 / linux/arm linux/arm/v7 linux/arm/v5 => 2
linux/arm/v6 / linux/arm/v7 linux/arm/v8 linux/arm => 2
linux/arm/v6 / linux/arm/v7 linux/arm/v8 => it has linux/arm/v7, linux/arm/v8
linux/arm64 / linux/arm64/v8 linux/arm64 => 1
linux/arm64 / linux/arm64/v9 linux/arm64/v8 => 1
linux/arm64/v9 / linux/arm64/v8 linux/arm64 => 1
freeBSD/armel/custom / freeBSD/armel freeBSD/armel/custom => 1
linux/amd64 / any linux/amd64 => 1
linux/amd64 / linux/arm64 any any => 1
linux/amd64 / linux/amd64 linux/amd64 => 0
linux/amd64 / linux/amd64 linux/amd64+zstd => 1
linux/amd64 / linux/amd64/v3+zstd linux/amd64 => 1
linux/amd64 / windows/amd64 linux/AMD64 => it has windows/amd64, linux/AMD64
linux/amd64 / linux/arm64 linux/amd64 => 1
linux/amd64 / linux/s390x unknown/unknown => 0
linux/amd64 / linux/arm64 linux/s390x => no image for linux/amd64; it has linux/arm64, linux/s390x
linux/amd64 / => it has no image at all";

    #[test]
    fn choose_takes_best_variant_or_single_image() {
        for row in CHOICES.lines() {
            let (index, expected) = row.split_once(" => ").unwrap();
            let (wanted, platforms) = index.split_once(" /").unwrap();
            // The size is the position.
            let entries = platforms.split_whitespace().enumerate().map(|(at, name)| {
                let (name, is_zstd) = name.strip_suffix("+zstd").map_or((name, false), |name| (name, true));
                let platform = (name != "any").then(|| platform(name));
                let annotations = is_zstd.then(|| json!({ZSTD: "true"}));
                let digest = Digest::of(b"image");
                json!({"mediaType": media_type::MANIFEST, "size": at, "digest": digest, "platform": platform, "annotations": annotations})
            });
            let chosen = choose(&entries.collect::<Vec<_>>(), wanted);
            let found = chosen.map_or_else(|error| error, |image| image.size.to_string());
            assert!(found.ends_with(expected), "{row}: {found}");
        }
    }
}
