//! Keys, and the bytes that they sign.

use std::{fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use model::crypto::rand::{SecureRandom, SystemRandom};
use model::crypto::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519,
    Ed25519KeyPair, KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use model::{Sha256, pem};
use rustls_pki_types::pem::{PemObject, SectionKind};
use spki::der::asn1::UintRef;
use spki::der::{Decode, Reader, SliceReader};
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

/// Object identifier of Ed25519 (RFC 8410, section 3).
const ED25519_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
/// Object identifier of keys on elliptic curves (RFC 5480, section 2.1.1).
const EC_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
/// Object identifier of RSA keys (RFC 3279, section 2.3.1).
const RSA_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// Supported sizes of an RSA modulus, in bits: a smaller one is insecure, and the library verifies
/// no larger one.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// First bytes of a PKCS#8 v1 structure, before the 32 bytes of the key (RFC 8410, section 10.3).
// The library generates PKCS#8 v2, which also holds the public key. OpenSSL reads only v1.
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// First bytes of a `SubjectPublicKeyInfo`, before the 32 bytes of the key (RFC 8410, section
/// 10.1).
const SPKI_HEAD: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Public key that verifies signatures: Ed25519, ECDSA over P-256 or P-384, or RSA.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    kind: KeyKind,
    /// Content of `subjectPublicKey`: a point, or the numbers of an RSA key.
    key: Vec<u8>,
    der: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
enum KeyKind {
    Ed25519,
    #[strum(serialize = "ECDSA P-256")]
    P256,
    #[strum(serialize = "ECDSA P-384")]
    P384,
    #[strum(serialize = "RSA")]
    Rsa,
}

/// Ed25519 key that signs (RFC 8032). Cloning it is cheap. It never prints its secret.
///
/// ```
/// use trust::SigningKey;
///
/// let pem = SigningKey::generate_pem()?;
/// let key = SigningKey::from_pem(pem.as_bytes())?;
/// assert_eq!(format!("{key:?}"), format!("SigningKey({})", key.public().id()));
/// # Ok::<(), trust::KeyError>(())
/// ```
#[derive(Clone)]
pub struct SigningKey(Arc<Ed25519KeyPair>);

/// Error of a text that holds no usable key. No variant quotes the text, because it may be a
/// private key.
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
    #[error(
        "this is a private key where a public key is wanted: take the PUBLIC KEY that belongs to it"
    )]
    Private,
    /// The private key is encrypted, for example by cosign.
    #[error(
        "the private key is encrypted, which is not supported: make one with `catalog-mirror keygen`"
    )]
    Encrypted,
    /// The public key is not the structure that PKIX defines (RFC 5280, section 4.1).
    #[error("the public key is not a SubjectPublicKeyInfo")]
    Malformed(#[source] spki::Error),
    /// The kind of key is not supported.
    #[error(
        "keys of the kind {0} are not supported: Ed25519, ECDSA over P-256 or P-384, and RSA are"
    )]
    Kind(String),
    /// The key has a size or form that is not supported.
    #[error("the {0} key cannot be used: it is malformed, or of a size that is not supported")]
    Unusable(&'static str),
    /// The private key is not an Ed25519 key.
    #[error(
        "the private key is not an Ed25519 key in PKCS#8: make one with `catalog-mirror keygen`"
    )]
    NotEd25519,
}

impl PublicKey {
    /// Reads all public keys of a PEM text.
    ///
    /// # Errors
    /// Fails if there is none, if one of them cannot be used, or if the text holds a private key.
    pub fn from_pem(text: &[u8]) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        for (kind, der) in sections(text)? {
            match kind {
                SectionKind::PublicKey => keys.push(Self::from_der(der)?),
                SectionKind::PrivateKey
                | SectionKind::RsaPrivateKey
                | SectionKind::EcPrivateKey => {
                    return Err(KeyError::Private);
                }
                _ => {}
            }
        }
        at_least_one(keys)
    }

    /// Reads public keys from a setting without line breaks: PEM, or only the base64 between its
    /// first and last line. Commas or spaces separate several keys.
    ///
    /// # Errors
    /// Fails like [`PublicKey::from_pem`].
    pub fn from_text(text: &str) -> Result<Vec<Self>, KeyError> {
        if text.contains("-----BEGIN") {
            return Self::from_pem(text.as_bytes());
        }
        let words = text.split([',', ' ', '\n']).filter(|word| !word.is_empty());
        let ders = words.map(|word| STANDARD.decode(word).map_err(|_| KeyError::Pem));
        at_least_one(
            ders.map(|der| Self::from_der(der?))
                .collect::<Result<_, _>>()?,
        )
    }

    /// Reads a key from the DER of a `SubjectPublicKeyInfo` (RFC 5280, section 4.1).
    ///
    /// # Errors
    /// Fails if the key is malformed, too weak or of a kind that is not supported.
    pub fn from_der(der: Vec<u8>) -> Result<Self, KeyError> {
        let info = SubjectPublicKeyInfoRef::try_from(&der[..]).map_err(KeyError::Malformed)?;
        let kind = KeyKind::of(&info)?;
        let key = info.subject_public_key.raw_bytes().to_vec();
        if !kind.fits(&key) {
            return Err(KeyError::Unusable(kind.into()));
        }
        Ok(Self { kind, key, der })
    }

    /// Returns the id of the key: the sha256 of its `SubjectPublicKeyInfo`.
    pub fn id(&self) -> Sha256 {
        Sha256::of(&self.der)
    }

    /// Returns the key as PEM with the label `PUBLIC KEY`.
    pub fn to_pem(&self) -> String {
        pem::section("PUBLIC KEY", &self.der)
    }

    /// Returns true if the signature is one of this key over the message.
    ///
    /// Ed25519 signs the message itself, all others its sha256; ECDSA signatures are in ASN.1, RSA
    /// ones in PKCS #1 v1.5.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let mut algorithms = self.kind.algorithms().into_iter();
        algorithms.any(|algorithm| {
            let key = UnparsedPublicKey::new(algorithm, &self.key);
            key.verify(message, signature).is_ok()
        })
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", self.kind, self.id())
    }
}

impl KeyKind {
    fn of(info: &SubjectPublicKeyInfoRef<'_>) -> Result<Self, KeyError> {
        let curve = info.algorithm.parameters_oid().ok();
        match info.algorithm.oid {
            ED25519_OID => Ok(Self::Ed25519),
            RSA_OID => Ok(Self::Rsa),
            EC_OID if curve == Some(P256_OID) => Ok(Self::P256),
            EC_OID if curve == Some(P384_OID) => Ok(Self::P384),
            // cosign can be given such keys, so the error names the curve.
            EC_OID => Err(KeyError::Kind(format!(
                "ECDSA over {}",
                curve.map_or_else(|| "an unnamed curve".to_owned(), |oid| oid.to_string())
            ))),
            other => Err(KeyError::Kind(other.to_string())),
        }
    }

    /// Returns true if the key has a valid size and form.
    fn fits(self, key: &[u8]) -> bool {
        match self {
            Self::Ed25519 => key.len() == 32,
            Self::P256 => is_point(key, 32),
            Self::P384 => is_point(key, 48),
            Self::Rsa => modulus_bits(key).is_some_and(|bits| RSA_BITS.contains(&bits)),
        }
    }

    fn algorithms(self) -> Vec<&'static dyn VerificationAlgorithm> {
        match self {
            Self::Ed25519 => vec![&ED25519],
            Self::P256 => vec![&ECDSA_P256_SHA256_ASN1],
            // Signers differ: cosign hashes with sha256, OpenSSL and KMS services with sha384.
            Self::P384 => vec![&ECDSA_P384_SHA256_ASN1, &ECDSA_P384_SHA384_ASN1],
            Self::Rsa => vec![&RSA_PKCS1_2048_8192_SHA256],
        }
    }
}

/// True for an uncompressed point, which is 4 and both coordinates (SEC 1, section 2.3.3).
/// `coordinate` is the size of one, in bytes.
fn is_point(key: &[u8], coordinate: usize) -> bool {
    key.len() == 1 + 2 * coordinate && key[0] == 4
}

impl SigningKey {
    /// Generates a key and returns it as PEM.
    ///
    /// # Errors
    /// Fails with [`KeyError::Unusable`] if the system has no random bytes.
    pub fn generate_pem() -> Result<String, KeyError> {
        let mut der = [0; 48];
        let (head, seed) = der.split_at_mut(PKCS8_HEAD.len());
        head.copy_from_slice(&PKCS8_HEAD);
        SystemRandom::new()
            .fill(seed)
            .map_err(|_| KeyError::Unusable("random Ed25519"))?;
        Ok(pem::section("PRIVATE KEY", &der))
    }

    /// Reads the only private key of a PEM text, as `catalog-mirror keygen` and `openssl genpkey`
    /// write it.
    ///
    /// # Errors
    /// Fails if there is none or more than one, or if it is encrypted or not an Ed25519 key.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let mut keys = sections(text)?
            .into_iter()
            .filter_map(|(kind, der)| match kind {
                SectionKind::PrivateKey
                | SectionKind::RsaPrivateKey
                | SectionKind::EcPrivateKey => Some(der),
                _ => None,
            });
        match (keys.next(), keys.next()) {
            (Some(der), None) => {
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
                    .map_err(|_| KeyError::NotEd25519)?;
                Ok(Self(Arc::new(pair)))
            }
            (Some(_), Some(_)) => Err(KeyError::NotEd25519),
            // For example `ENCRYPTED PRIVATE KEY` and `ENCRYPTED SIGSTORE PRIVATE KEY`.
            (None, _) if text.windows(9).any(|part| part == b"ENCRYPTED") => {
                Err(KeyError::Encrypted)
            }
            (None, _) => Err(KeyError::None {
                wanted: "PRIVATE KEY",
            }),
        }
    }

    /// Returns the public key that verifies its signatures.
    pub fn public(&self) -> PublicKey {
        let der = [&SPKI_HEAD[..], self.0.public_key().as_ref()].concat();
        PublicKey::from_der(der).expect("what was just put together is a key")
    }

    /// Signs a message. The same message always gives the same signature.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

/// Prints the id of the key, never the key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public().id())
    }
}

fn at_least_one(keys: Vec<PublicKey>) -> Result<Vec<PublicKey>, KeyError> {
    if keys.is_empty() {
        return Err(KeyError::None {
            wanted: "PUBLIC KEY",
        });
    }
    Ok(keys)
}

/// Returns the size of the modulus in bits. The key is a sequence of modulus and exponent (RFC
/// 8017, appendix A.1.1).
fn modulus_bits(key: &[u8]) -> Option<usize> {
    let mut reader = SliceReader::new(key).ok()?;
    let modulus = reader.sequence(|reader| {
        let modulus = UintRef::decode(reader)?;
        UintRef::decode(reader)?;
        Ok::<_, spki::der::Error>(modulus.as_bytes())
    });
    let bytes = modulus.ok()?;
    let zeros = bytes.first()?.leading_zeros() as usize;
    Some(bytes.len() * 8 - zeros)
}

/// Returns the content of all PEM sections (RFC 7468), in their order.
fn sections(text: &[u8]) -> Result<Vec<(SectionKind, Vec<u8>)>, KeyError> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        // The library's error may quote a line, and the line may belong to a private key.
        .map_err(|_| KeyError::Pem)
}

/// Returns the bytes that are signed for a payload: the pre-authentication encoding of DSSE v1.0.2
/// (protocol.md, "Signature Definition").
///
/// ```
/// use trust::pae;
///
/// assert_eq!(pae("text/plain", b"hello"), b"DSSEv1 10 text/plain 5 hello");
/// ```
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    // Both parts carry their length in bytes, so no two pairs have the same encoding.
    let head = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests;
