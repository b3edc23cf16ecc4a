use model::{CatalogImage, ObjectDigest, Sha256};

use crate::{folder::ROOT, media_type};

/// Label of the image config that holds the path of the FBC root (operator-registry,
/// `ConfigsLocationLabel`).
pub const LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// Processors whose platforms the index of a catalog image lists, in this order and in the names of
/// Go's `GOARCH`.
pub const ARCHITECTURES: [&str; 4] = [
    // All that public catalogs are published for. A runtime refuses an index without an entry for
    // its own platform.
    "amd64", "arm64", "ppc64le", "s390x",
];

/// JSON documents of a catalog image, in the bytes that are stored and hashed. All of their values
/// are plain text without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// Image configs, one for each of [`ARCHITECTURES`], in that order.
    pub configs: Vec<Vec<u8>>,
    /// Image manifests, one for each of [`ARCHITECTURES`], in that order.
    pub manifests: Vec<Vec<u8>>,
    /// Image index that lists all manifests. Its digest is the digest of the image.
    pub index: Vec<u8>,
}

impl Documents {
    /// Creates the documents of an image with one layer. `diff_id` is the sha256 of the
    /// uncompressed tar archive.
    pub fn new(layer: ObjectDigest, diff_id: Sha256) -> Self {
        let mut configs = Vec::new();
        let mut manifests = Vec::new();
        for architecture in ARCHITECTURES {
            let config = config(architecture, diff_id);
            manifests.push(manifest(&config, layer));
            configs.push(config);
        }
        let index = index(&manifests);
        Self {
            configs,
            manifests,
            index,
        }
    }

    /// Returns the description of the image that a Snapshot contains. `layer` and `diff_id` name
    /// its only layer.
    pub fn image(&self, layer: ObjectDigest, diff_id: Sha256) -> CatalogImage {
        let manifests = self.manifests.iter();
        let configs = self.configs.iter();
        CatalogImage {
            index: ObjectDigest::of(&self.index),
            manifests: manifests.map(|bytes| ObjectDigest::of(bytes)).collect(),
            configs: configs.map(|bytes| ObjectDigest::of(bytes)).collect(),
            layer,
            diff_id,
        }
    }

    /// Returns all documents: configs, then manifests, then the index, so that each comes after
    /// those that it names.
    pub fn into_all(self) -> impl Iterator<Item = Vec<u8>> {
        self.configs
            .into_iter()
            .chain(self.manifests)
            .chain([self.index])
    }
}

/// Returns a digest in the form `sha256:<hex>` (OCI image specification, "Digests").
pub fn digest(sha256: &Sha256) -> String {
    format!("sha256:{sha256}")
}

/// Returns an image config (OCI image specification, "Image Configuration"): the required fields,
/// the label and the history. It has no `created`: a time would change the digest of an image whose
/// content is the same.
fn config(architecture: &str, diff_id: Sha256) -> Vec<u8> {
    let platform = platform(architecture);
    let diff_id = digest(&diff_id);
    format!(
        r#"{{{platform},"config":{{"Labels":{{"{LABEL}":"/{ROOT}"}}}},"rootfs":{{"type":"layers","diff_ids":["{diff_id}"]}},"history":[{{"created_by":"catalog-mirror"}}]}}"#
    )
    .into_bytes()
}

/// Returns an image manifest with one layer (OCI image specification, "Image Manifest").
fn manifest(config: &[u8], layer: ObjectDigest) -> Vec<u8> {
    let kind = media_type::MANIFEST;
    let config = descriptor(media_type::CONFIG, ObjectDigest::of(config));
    let layer = descriptor(media_type::LAYER, layer);
    format!(
        r#"{{"schemaVersion":2,"mediaType":"{kind}","config":{{{config}}},"layers":[{{{layer}}}]}}"#
    )
    .into_bytes()
}

/// Returns an image index with one manifest for each platform (OCI image specification, "Image
/// Index").
fn index(manifests: &[Vec<u8>]) -> Vec<u8> {
    let mut entries = Vec::new();
    for (manifest, architecture) in manifests.iter().zip(ARCHITECTURES) {
        let entry = descriptor(media_type::MANIFEST, ObjectDigest::of(manifest));
        let platform = platform(architecture);
        entries.push(format!(r#"{{{entry},"platform":{{{platform}}}}}"#));
    }
    let entries = entries.join(",");
    let kind = media_type::INDEX;
    format!(r#"{{"schemaVersion":2,"mediaType":"{kind}","manifests":[{entries}]}}"#).into_bytes()
}

/// Returns the fields of a platform.
fn platform(architecture: &str) -> String {
    format!(r#""architecture":"{architecture}","os":"linux""#)
}

/// Returns the fields of a descriptor (OCI image specification, "Descriptor").
fn descriptor(media_type: &str, stored: ObjectDigest) -> String {
    let digest = digest(&stored.sha256);
    let size = stored.size;
    format!(r#""mediaType":"{media_type}","digest":"{digest}","size":{size}"#)
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
        let hashes: Vec<Sha256> = documents
            .into_all()
            .map(|bytes| Sha256::of(&bytes))
            .collect();
        let blobs: Vec<Sha256> = image.blobs().map(|stored| stored.sha256).collect();
        assert_eq!(hashes.len(), 2 * ARCHITECTURES.len() + 1);
        assert_eq!(blobs.len(), hashes.len() + 1);
        assert!(hashes.iter().all(|hash| blobs.contains(hash)));
        assert_eq!(hashes.last(), Some(&image.index.sha256));
    }
}
