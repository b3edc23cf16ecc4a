use std::collections::BTreeMap;

use model::{CatalogImage, ObjectDigest, Sha256};
use serde::Serialize;

use crate::{folder::ROOT, media_type};

/// Label of the image config that holds the path of the FBC root (operator-registry, `ConfigsLocationLabel`).
pub const LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// Platforms that the index of a catalog image lists, in this order.
pub const PLATFORMS: [Platform; 4] = [
    // All that public catalogs are published for. A runtime refuses an index without an entry for its own platform.
    Platform::linux("amd64"),
    Platform::linux("arm64"),
    Platform::linux("ppc64le"),
    Platform::linux("s390x"),
];

/// Platform of an image, in the names of Go's `GOARCH` and `GOOS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// Processor architecture, such as `amd64`.
    pub architecture: &'static str,
    /// Operating system, always `linux` here.
    pub os: &'static str,
}

/// JSON documents of a catalog image, in the bytes that are stored and hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// Image configs, one for each of [`PLATFORMS`], in that order.
    pub configs: Vec<Vec<u8>>,
    /// Image manifests, one for each of [`PLATFORMS`], in that order.
    pub manifests: Vec<Vec<u8>>,
    /// Image index that lists all manifests. Its digest is the digest of the image.
    pub index: Vec<u8>,
}

impl Platform {
    const fn linux(architecture: &'static str) -> Self {
        Self {
            architecture,
            os: "linux",
        }
    }
}

impl Documents {
    /// Creates the documents of an image with one layer. `diff_id` is the sha256 of the uncompressed tar archive.
    pub fn new(layer: ObjectDigest, diff_id: Sha256) -> Self {
        let configs: Vec<Vec<u8>> = PLATFORMS.iter().map(|platform| config(*platform, diff_id)).collect();
        let manifests: Vec<Vec<u8>> = configs.iter().map(|config| manifest(config, layer)).collect();
        let index = index(&manifests);
        Self {
            configs,
            manifests,
            index,
        }
    }

    /// Returns the description of the image that a Snapshot contains. `layer` and `diff_id` name its only layer.
    pub fn image(&self, layer: ObjectDigest, diff_id: Sha256) -> CatalogImage {
        let all = |documents: &[Vec<u8>]| documents.iter().map(|bytes| stored(bytes)).collect();
        CatalogImage {
            index: stored(&self.index),
            manifests: all(&self.manifests),
            configs: all(&self.configs),
            layer,
            diff_id,
        }
    }

    /// Returns all documents: configs, then manifests, then the index, so that each comes after those that it names.
    pub fn into_all(self) -> impl Iterator<Item = Vec<u8>> {
        self.configs.into_iter().chain(self.manifests).chain([self.index])
    }
}

/// Returns a digest in the form `sha256:<hex>` (OCI image specification, "Digests").
pub fn digest(sha256: &Sha256) -> String {
    format!("sha256:{sha256}")
}

fn stored(bytes: &[u8]) -> ObjectDigest {
    ObjectDigest {
        size: bytes.len() as u64,
        sha256: Sha256::of(bytes),
    }
}

fn config(platform: Platform, diff_id: Sha256) -> Vec<u8> {
    json(&Configuration {
        platform,
        config: Execution {
            labels: BTreeMap::from([(LABEL, format!("/{ROOT}"))]),
        },
        // All platforms share the layer, since a catalog holds nothing that a processor runs.
        rootfs: RootFs {
            kind: "layers",
            diff_ids: [digest(&diff_id)],
        },
        history: [History {
            created_by: "catalog-mirror",
        }],
    })
}

fn manifest(config: &[u8], layer: ObjectDigest) -> Vec<u8> {
    json(&Manifest {
        schema_version: 2,
        media_type: media_type::MANIFEST,
        config: Descriptor::new(media_type::CONFIG, stored(config)),
        layers: [Descriptor::new(media_type::LAYER, layer)],
    })
}

fn index(manifests: &[Vec<u8>]) -> Vec<u8> {
    let descriptors = manifests.iter().zip(PLATFORMS).map(|(manifest, platform)| Descriptor {
        platform: Some(platform),
        ..Descriptor::new(media_type::MANIFEST, stored(manifest))
    });
    json(&Index {
        schema_version: 2,
        media_type: media_type::INDEX,
        manifests: descriptors.collect(),
    })
}

fn json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("documents hold only plain fields")
}

/// Image config (OCI image specification, "Image Configuration"), reduced to the required fields, the label and the
/// history.
// It has no `created`: a time would change the digest of an image whose content is the same.
#[derive(Serialize)]
struct Configuration {
    #[serde(flatten)]
    platform: Platform,
    config: Execution,
    rootfs: RootFs,
    history: [History; 1],
}

#[derive(Serialize)]
struct Execution {
    #[serde(rename = "Labels")]
    labels: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
struct RootFs {
    #[serde(rename = "type")]
    kind: &'static str,
    diff_ids: [String; 1],
}

#[derive(Serialize)]
struct History {
    created_by: &'static str,
}

/// Image manifest with one layer (OCI image specification, "Image Manifest").
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    schema_version: u32,
    media_type: &'static str,
    config: Descriptor,
    layers: [Descriptor; 1],
}

/// Image index with one manifest for each platform (OCI image specification, "Image Index").
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    media_type: &'static str,
    manifests: Vec<Descriptor>,
}

/// Reference to a blob by media type, digest and size (OCI image specification, "Descriptor").
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: &'static str,
    digest: String,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<Platform>,
}

impl Descriptor {
    fn new(media_type: &'static str, stored: ObjectDigest) -> Self {
        Self {
            media_type,
            digest: digest(&stored.sha256),
            size: stored.size,
            platform: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> (Documents, CatalogImage) {
        let layer = ObjectDigest {
            size: 7,
            sha256: Sha256::of(b"layer"),
        };
        let documents = Documents::new(layer, Sha256::of(b"tar"));
        let image = documents.image(layer, Sha256::of(b"tar"));
        (documents, image)
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn documents_have_the_json_of_the_specification() {
        let (documents, image) = documents();
        let (tar, layer) = (Sha256::of(b"tar"), Sha256::of(b"layer"));
        assert_eq!(
            text(&documents.configs[1]),
            format!(
                r#"{{"architecture":"arm64","os":"linux","config":{{"Labels":{{"operators.operatorframework.io.index.configs.v1":"/configs"}}}},"rootfs":{{"type":"layers","diff_ids":["sha256:{tar}"]}},"history":[{{"created_by":"catalog-mirror"}}]}}"#
            )
        );
        let ObjectDigest { size, sha256 } = image.configs[1];
        assert_eq!(
            text(&documents.manifests[1]),
            format!(
                r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:{sha256}","size":{size}}},"layers":[{{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:{layer}","size":7}}]}}"#
            )
        );
        let ObjectDigest { size, sha256 } = image.manifests[0];
        let first = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:{sha256}","size":{size},"platform":{{"architecture":"amd64","os":"linux"}}}},"#
        );
        assert!(text(&documents.index).starts_with(&first));
    }

    #[test]
    fn into_all_lists_each_blob_after_those_that_it_names() {
        let (documents, image) = documents();
        let hashes: Vec<Sha256> = documents.into_all().map(|bytes| Sha256::of(&bytes)).collect();
        let blobs: Vec<Sha256> = image.blobs().map(|stored| stored.sha256).collect();
        assert_eq!(hashes.len(), 2 * PLATFORMS.len() + 1);
        assert_eq!(blobs.len(), hashes.len() + 1);
        assert!(hashes.iter().all(|hash| blobs.contains(hash)));
        assert_eq!(hashes.last(), Some(&image.index.sha256));
    }
}
