use std::{fmt, sync::Arc};

use model::text::pem;
use ring::{
    rand::{SecureRandom, SystemRandom},
    signature::{Ed25519KeyPair, KeyPair},
};
use rustls_pki_types::pem::SectionKind;

use super::{KeyError, PublicKey, sections};

/// First bytes of a PKCS#8 v1 structure, before the 32 bytes of the key (RFC 8410, section 10.3).
// The library generates PKCS#8 v2, which also holds the public key. OpenSSL reads only v1.
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// First bytes of a `SubjectPublicKeyInfo`, before the 32 bytes of the key (RFC 8410, section 10.1).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Ed25519 key that signs (RFC 8032). Cloning it is cheap. It never prints its secret.
///
/// ```
/// use catalog_mirror_trust::SigningKey;
///
/// let pem = SigningKey::generate_pem()?;
/// let key = SigningKey::from_pem(pem.as_bytes())?;
/// assert_eq!(format!("{key:?}"), format!("SigningKey({})", key.public().id()));
/// # Ok::<(), catalog_mirror_trust::KeyError>(())
/// ```
#[derive(Clone)]
pub struct SigningKey(Arc<Ed25519KeyPair>);

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
        Ok(pem("PRIVATE KEY", &der))
    }

    /// Reads the only private key of a PEM text, as `catalog-mirror keygen` and `openssl genpkey` write it.
    ///
    /// # Errors
    /// Fails if there is none or more than one, or if it is encrypted or not an Ed25519 key.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let mut keys = sections(text)?.into_iter().filter_map(|(kind, der)| match kind {
            SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey => Some(der),
            _ => None,
        });
        match (keys.next(), keys.next()) {
            (Some(der), None) => {
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| KeyError::NotEd25519)?;
                Ok(Self(Arc::new(pair)))
            }
            (Some(_), Some(_)) => Err(KeyError::NotEd25519),
            // For example `ENCRYPTED PRIVATE KEY` and `ENCRYPTED SIGSTORE PRIVATE KEY`.
            (None, _) if text.windows(9).any(|part| part == b"ENCRYPTED") => Err(KeyError::Encrypted),
            (None, _) => Err(KeyError::None { wanted: "PRIVATE KEY" }),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_pem_refuses_other_keys() {
        let ecdsa = ring::signature::EcdsaKeyPair::generate_pkcs8(
            &ring::signature::ECDSA_P256_SHA256_ASN1_SIGNING,
            &SystemRandom::new(),
        )
        .unwrap();
        let ecdsa = pem("PRIVATE KEY", ecdsa.as_ref());
        let one = SigningKey::generate_pem().unwrap();
        let public = SigningKey::from_pem(one.as_bytes()).unwrap().public().to_pem();
        let encrypted = pem("ENCRYPTED SIGSTORE PRIVATE KEY", b"{}");
        let refused = |text: &str| SigningKey::from_pem(text.as_bytes()).unwrap_err();
        assert!(matches!(refused(&ecdsa), KeyError::NotEd25519));
        assert!(matches!(refused(&format!("{one}{one}")), KeyError::NotEd25519));
        assert!(matches!(refused(&public), KeyError::None { wanted: "PRIVATE KEY" }));
        assert!(matches!(refused(&encrypted), KeyError::Encrypted));
        assert!(matches!(refused(&one.replace("MC4C", "!!!!")), KeyError::Pem));
        assert!(matches!(refused(""), KeyError::None { .. }));
    }
}
