use base64::{Engine, engine::general_purpose::STANDARD};
use rustls_pki_types::pem::{PemObject, SectionKind};

/// Why a text holds no key that can be used. None of these quotes what was read.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Broken armour.
    #[error("the PEM cannot be read")]
    Pem,
    /// No PEM section of the kind that is wanted.
    #[error("there is no {wanted} in the PEM")]
    None {
        /// Such as `PUBLIC KEY`.
        wanted: &'static str,
    },
    /// A private key where a public one should be: it must not be spread.
    #[error("this is a private key where a public key is wanted: take the PUBLIC KEY that belongs to it")]
    Private,
    /// A key that cosign has encrypted, or another encrypted one.
    #[error("the private key is encrypted, which is not supported: make one with `catalog-mirror keygen`")]
    Encrypted,
    /// Not the structure that PKIX says (RFC 5280, section 4.1).
    #[error("the public key is not a SubjectPublicKeyInfo")]
    Malformed(#[source] spki::Error),
    /// A kind of key that is not supported.
    #[error("keys of the kind {0} are not supported: Ed25519, ECDSA over P-256 or P-384, and RSA are")]
    Kind(String),
    /// A key that is too short, or that no signature could fit.
    #[error("the {0} key cannot be used: it is malformed, or of a size that is not supported")]
    Unusable(&'static str),
    /// Not an Ed25519 key.
    #[error("the private key is not an Ed25519 key in PKCS#8: make one with `catalog-mirror keygen`")]
    NotEd25519,
}

/// The content of all PEM sections (RFC 7468), in their order.
pub(crate) fn sections(text: &[u8]) -> Result<Vec<(SectionKind, Vec<u8>)>, KeyError> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        // The library's error may quote a line, and a line may be of a private key.
        .map_err(|_| KeyError::Pem)
}

/// One PEM section.
pub(crate) fn armour(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    // RFC 7468, section 2: 64 characters a line.
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .filter_map(|line| std::str::from_utf8(line).ok())
        .collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
