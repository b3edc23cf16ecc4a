use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{KeyPair, PublicKeyData, SigningKey};
use serde_json::json;

use crate::image::{Image, MANIFEST, digest};

/// Signing key as `cosign generate-key-pair` makes it (ECDSA over P-256), and the signatures that
/// cosign makes.
pub struct Cosign(KeyPair);

impl Cosign {
    /// Generates a key from the system's random numbers.
    #[expect(clippy::new_without_default, reason = "each call makes another key")]
    pub fn new() -> Self {
        Self(KeyPair::generate().expect("the system has random bytes"))
    }

    /// Returns the public key as a DER `SubjectPublicKeyInfo` (RFC 5280, section 4.1).
    pub fn public(&self) -> Vec<u8> {
        self.0.subject_public_key_info()
    }

    /// Signs a message with SHA-256. Returns base64 of DER.
    pub fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.0.sign(message).expect("the key can sign"))
    }

    /// Returns the image that holds the signature of an image, as repositories have it under
    /// `sha256-HEX.sig`.
    pub fn signature(&self, digest_of_image: &str, name: &str) -> Image {
        let payload = Self::payload(digest_of_image, name);
        let layer = json!({
            "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
            "digest": digest(payload.as_bytes()),
            "size": payload.len(),
            "annotations": {"dev.cosignproject.cosign/signature": self.sign(payload.as_bytes())},
        });
        let config = json!({"mediaType": "x", "digest": digest(b"{}"), "size": 2});
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
        let mut image = Image::of_manifest(MANIFEST, manifest.to_string().into());
        image
            .blobs
            .insert(digest(payload.as_bytes()), payload.into());
        image
    }

    /// Returns the payload that cosign signs: the digest of the image and its name.
    pub fn payload(digest: &str, name: &str) -> String {
        let critical = json!({
            "type": "cosign container image signature",
            "image": {"docker-manifest-digest": digest},
            "identity": {"docker-reference": name},
        });
        json!({"critical": critical, "optional": null}).to_string()
    }
}
