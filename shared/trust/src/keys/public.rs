use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{Sha256, text::pem};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256,
    UnparsedPublicKey, VerificationAlgorithm,
};
use rustls_pki_types::pem::SectionKind;
use spki::{
    ObjectIdentifier, SubjectPublicKeyInfoRef,
    der::{Decode, Reader, SliceReader, asn1::UintRef},
};

use super::{KeyError, sections};

/// Object identifier of Ed25519 (RFC 8410, section 3).
const ED25519_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
/// Object identifier of keys on elliptic curves (RFC 5480, section 2.1.1).
const EC_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
/// Object identifier of RSA keys (RFC 3279, section 2.3.1).
const RSA_OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// Supported sizes of an RSA modulus, in bits: a smaller one is insecure, and the library verifies no larger one.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

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
                SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey => {
                    return Err(KeyError::Private);
                }
                _ => {}
            }
        }
        at_least_one(keys)
    }

    /// Reads public keys from a setting without line breaks: PEM, or only the base64 between its first and last line. Commas
    /// or spaces separate several keys.
    ///
    /// # Errors
    /// Fails like [`PublicKey::from_pem`].
    pub fn from_text(text: &str) -> Result<Vec<Self>, KeyError> {
        if text.contains("-----BEGIN") {
            return Self::from_pem(text.as_bytes());
        }
        let words = text.split([',', ' ', '\n']).filter(|word| !word.is_empty());
        let ders = words.map(|word| STANDARD.decode(word).map_err(|_| KeyError::Pem));
        at_least_one(ders.map(|der| Self::from_der(der?)).collect::<Result<_, _>>()?)
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
        pem("PUBLIC KEY", &self.der)
    }

    /// Returns true if the signature is one of this key over the message.
    ///
    /// Ed25519 signs the message itself, all others its sha256; ECDSA signatures are in ASN.1, RSA ones in PKCS #1 v1.5.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let fits = |algorithm| {
            let key = UnparsedPublicKey::new(algorithm, &self.key);
            key.verify(message, signature).is_ok()
        };
        self.kind.algorithms().into_iter().any(fits)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", self.kind, self.id())
    }
}

impl KeyKind {
    fn of(info: &SubjectPublicKeyInfoRef<'_>) -> Result<Self, KeyError> {
        let curve = || info.algorithm.parameters_oid().ok();
        match info.algorithm.oid {
            ED25519_OID => Ok(Self::Ed25519),
            RSA_OID => Ok(Self::Rsa),
            EC_OID if curve() == Some(P256_OID) => Ok(Self::P256),
            EC_OID if curve() == Some(P384_OID) => Ok(Self::P384),
            // cosign can be given such keys, so the error names the curve.
            EC_OID => Err(KeyError::Kind(format!(
                "ECDSA over {}",
                curve().map_or_else(|| "an unnamed curve".to_owned(), |oid| oid.to_string())
            ))),
            other => Err(KeyError::Kind(other.to_string())),
        }
    }

    /// Returns true if the key has a valid size and form.
    fn fits(self, key: &[u8]) -> bool {
        // SEC 1, section 2.3.3: an uncompressed point is 4 and both coordinates.
        let point = |length: usize| key.len() == 1 + 2 * length && key[0] == 4;
        match self {
            Self::Ed25519 => key.len() == 32,
            Self::P256 => point(32),
            Self::P384 => point(48),
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

fn at_least_one(keys: Vec<PublicKey>) -> Result<Vec<PublicKey>, KeyError> {
    if keys.is_empty() {
        return Err(KeyError::None { wanted: "PUBLIC KEY" });
    }
    Ok(keys)
}

/// Returns the size of the modulus in bits. The key is a sequence of modulus and exponent (RFC 8017, appendix A.1.1).
fn modulus_bits(key: &[u8]) -> Option<usize> {
    let mut reader = SliceReader::new(key).ok()?;
    let modulus = reader.sequence(|reader| {
        let modulus = UintRef::decode(reader)?;
        UintRef::decode(reader)?;
        Ok::<_, spki::der::Error>(modulus.as_bytes())
    });
    let modulus = modulus.ok()?;
    let zeros = modulus.first()?.leading_zeros() as usize;
    Some(modulus.len() * 8 - zeros)
}

#[cfg(test)]
mod tests;
