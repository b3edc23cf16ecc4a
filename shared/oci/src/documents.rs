use std::collections::BTreeMap;

use layout::{Image, Sha256, Stored};
use serde::Serialize;

use crate::{folder::ROOT, media_type};

/// The label by which clusters and tools find the catalog in an image (operator-registry, `ConfigsLocationLabel`).
pub const LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// What the image is offered for: every platform of a Kubernetes cluster that catalogs are published for. Runtimes
/// refuse an index without their own.
pub const PLATFORMS: [Platform; 4] = [
    Platform::linux("amd64"),
    Platform::linux("arm64"),
    Platform::linux("ppc64le"),
    Platform::linux("s390x"),
];

/// A platform in the words of Go's `GOARCH` and `GOOS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// The processor.
    pub architecture: &'static str,
    /// The operating system.
    pub os: &'static str,
}

/// The documents of an image as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// The configurations in the order of [`PLATFORMS`].
    pub configs: Vec<Vec<u8>>,
    /// The manifests in the same order.
    pub manifests: Vec<Vec<u8>>,
    /// The index over them.
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
    /// The documents around a layer, which unpacks to a tar archive with the hash `diff_id`.
    pub fn new(layer: Stored, diff_id: Sha256) -> Self {
        let configs: Vec<Vec<u8>> = PLATFORMS.iter().map(|platform| config(*platform, diff_id)).collect();
        let manifests: Vec<Vec<u8>> = configs.iter().map(|config| manifest(config, layer)).collect();
        let index = index(&manifests);
        Self {
            configs,
            manifests,
            index,
        }
    }

    /// What a Snapshot records of the image.
    pub fn image(&self, layer: Stored, diff_id: Sha256) -> Image {
        let all = |documents: &[Vec<u8>]| documents.iter().map(|bytes| stored(bytes)).collect();
        Image {
            index: stored(&self.index),
            manifests: all(&self.manifests),
            configs: all(&self.configs),
            layer,
            diff_id,
        }
    }

    /// All documents, what is named before what names it.
    pub fn into_all(self) -> impl Iterator<Item = Vec<u8>> {
        self.configs.into_iter().chain(self.manifests).chain([self.index])
    }
}

/// A digest as the specification writes it (OCI image specification, "Digests").
pub fn digest(sha256: &Sha256) -> String {
    format!("sha256:{sha256}")
}

fn stored(bytes: &[u8]) -> Stored {
    Stored {
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
        rootfs: RootFs {
            kind: "layers",
            diff_ids: [digest(&diff_id)],
        },
        history: [History {
            created_by: "catalog-mirror",
        }],
    })
}

fn manifest(config: &[u8], layer: Stored) -> Vec<u8> {
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

/// OCI image specification, "Image Configuration". Nothing says when it was created: that is no part of the content.
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

/// OCI image specification, "Image Manifest".
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    schema_version: u32,
    media_type: &'static str,
    config: Descriptor,
    layers: [Descriptor; 1],
}

/// OCI image specification, "Image Index".
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    media_type: &'static str,
    manifests: Vec<Descriptor>,
}

/// OCI image specification, "Descriptor".
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
    fn new(media_type: &'static str, stored: Stored) -> Self {
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

    fn documents() -> (Documents, Image) {
        let layer = Stored {
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
    fn documents_read_as_the_specification_has_them() {
        let (documents, image) = documents();
        let (tar, layer) = (Sha256::of(b"tar"), Sha256::of(b"layer"));
        assert_eq!(
            text(&documents.configs[1]),
            format!(
                r#"{{"architecture":"arm64","os":"linux","config":{{"Labels":{{"operators.operatorframework.io.index.configs.v1":"/configs"}}}},"rootfs":{{"type":"layers","diff_ids":["sha256:{tar}"]}},"history":[{{"created_by":"catalog-mirror"}}]}}"#
            )
        );
        let Stored { size, sha256 } = image.configs[1];
        assert_eq!(
            text(&documents.manifests[1]),
            format!(
                r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:{sha256}","size":{size}}},"layers":[{{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:{layer}","size":7}}]}}"#
            )
        );
        let Stored { size, sha256 } = image.manifests[0];
        let first = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:{sha256}","size":{size},"platform":{{"architecture":"amd64","os":"linux"}}}},"#
        );
        assert!(text(&documents.index).starts_with(&first));
    }

    #[test]
    fn every_document_is_a_blob_of_its_own_and_comes_after_what_it_names() {
        let (documents, image) = documents();
        let hashes: Vec<Sha256> = documents.into_all().map(|bytes| Sha256::of(&bytes)).collect();
        let blobs: Vec<Sha256> = image.blobs().map(|stored| stored.sha256).collect();
        assert_eq!(hashes.len(), 2 * PLATFORMS.len() + 1);
        assert_eq!(blobs.len(), hashes.len() + 1);
        assert!(hashes.iter().all(|hash| blobs.contains(hash)));
        assert_eq!(hashes.last(), Some(&image.index.sha256));
    }
}
