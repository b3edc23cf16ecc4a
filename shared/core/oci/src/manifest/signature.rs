//! Documents that hold signatures of images, in the forms of cosign.

use serde::Deserialize;

use super::ImageDescriptor;

/// Media type of a signed payload (cosign, specs/SIGNATURE_SPEC.md).
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Annotation with the signature in base64.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// Artifact type of signatures that are referrers of the image (cosign,
/// `COSIGN_EXPERIMENTAL=1 --registry-referrers-mode=oci-1-1`).
const SIGNATURE_ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// Type that cosign 2 writes into the index of a registry without referrers in place of the type of
/// its bundles.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// Start of the media types of Sigstore bundles of all versions.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";

/// The needed parts of a manifest of signatures, or of an index that lists some.
#[derive(Debug, Deserialize)]
pub struct SignatureManifest {
    /// Signatures of a manifest.
    #[serde(default)]
    pub layers: Vec<ImageDescriptor>,
    /// Manifests of an index.
    #[serde(default)]
    pub manifests: Vec<ImageDescriptor>,
}

impl ImageDescriptor {
    /// Returns true if the entry may be a signature. SBOMs and scans refer to images too, and may
    /// also be in bundles; only the content of a bundle tells.
    pub fn is_signature(&self) -> bool {
        let kind = self.artifact_type.as_deref().unwrap_or(EMPTY);
        [SIGNATURE_ARTIFACT, EMPTY].contains(&kind) || kind.starts_with(BUNDLE)
    }

    /// Returns true for a layer of a signature manifest that holds a signature: a payload or a
    /// bundle.
    pub fn is_content(&self) -> bool {
        self.attached().is_some() || self.media_type.starts_with(BUNDLE)
    }

    /// Returns the signature of a payload.
    pub fn attached(&self) -> Option<&str> {
        if self.media_type != SIMPLE_SIGNING {
            return None;
        }
        self.annotation(SIGNATURE)
    }
}
