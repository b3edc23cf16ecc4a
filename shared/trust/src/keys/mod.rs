//! Keys, and the bytes that they sign.

mod public;
mod signing;

use rustls_pki_types::pem::{PemObject, SectionKind};

pub use public::PublicKey;
pub use signing::SigningKey;

/// Error of a text that holds no usable key. No variant quotes the text, because it may be a private key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The armour or the base64 of the PEM is malformed.
    #[error("the PEM cannot be read")]
    Pem,
    /// The PEM has no section of the wanted kind.
    #[error("there is no {wanted} in the PEM")]
    None {
        /// Label of the wanted section, for example `PUBLIC KEY`.
        wanted: &'static str,
    },
    /// The text holds a private key where a public one belongs: it must not be distributed.
    #[error("this is a private key where a public key is wanted: take the PUBLIC KEY that belongs to it")]
    Private,
    /// The private key is encrypted, for example by cosign.
    #[error("the private key is encrypted, which is not supported: make one with `catalog-mirror keygen`")]
    Encrypted,
    /// The public key is not the structure that PKIX defines (RFC 5280, section 4.1).
    #[error("the public key is not a SubjectPublicKeyInfo")]
    Malformed(#[source] spki::Error),
    /// The kind of key is not supported.
    #[error("keys of the kind {0} are not supported: Ed25519, ECDSA over P-256 or P-384, and RSA are")]
    Kind(String),
    /// The key has a size or form that is not supported.
    #[error("the {0} key cannot be used: it is malformed, or of a size that is not supported")]
    Unusable(&'static str),
    /// The private key is not an Ed25519 key.
    #[error("the private key is not an Ed25519 key in PKCS#8: make one with `catalog-mirror keygen`")]
    NotEd25519,
}

/// Returns the content of all PEM sections (RFC 7468), in their order.
pub(crate) fn sections(text: &[u8]) -> Result<Vec<(SectionKind, Vec<u8>)>, KeyError> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        // The library's error may quote a line, and the line may belong to a private key.
        .map_err(|_| KeyError::Pem)
}

/// Returns the bytes that are signed for a payload: the pre-authentication encoding of DSSE v1.0.2 (protocol.md,
/// "Signature Definition").
///
/// ```
/// use catalog_mirror_trust::pae;
///
/// assert_eq!(pae("text/plain", b"hello"), b"DSSEv1 10 text/plain 5 hello");
/// ```
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    // Both parts carry their length in bytes, so no two pairs have the same encoding.
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}
