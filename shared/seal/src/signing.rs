use std::{fmt, sync::Arc};

use ring::{
    rand::{SecureRandom, SystemRandom},
    signature::{Ed25519KeyPair, KeyPair},
};
use rustls_pki_types::pem::SectionKind;

use crate::{
    PublicKey,
    pem::{KeyError, armour, sections},
};

/// A PKCS#8 v1 structure up to the 32 bytes of the key (RFC 8410, section 10.3). OpenSSL reads this form; what the
/// library generates itself has the public key behind it, which OpenSSL does not read.
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// A `SubjectPublicKeyInfo` up to the 32 bytes of the key (RFC 8410, section 10.1).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// An Ed25519 key that signs. Cheap to clone.
#[derive(Clone)]
pub struct SigningKey(Arc<Ed25519KeyPair>);

impl SigningKey {
    /// A new key, as PEM: the one form in which it is kept.
    ///
    /// # Errors
    /// [`KeyError::Unusable`] if the system gives no random bytes.
    pub fn generate_pem() -> Result<String, KeyError> {
        let mut der = [0; 48];
        let (head, seed) = der.split_at_mut(PKCS8_HEAD.len());
        head.copy_from_slice(&PKCS8_HEAD);
        SystemRandom::new()
            .fill(seed)
            .map_err(|_| KeyError::Unusable("random Ed25519"))?;
        Ok(armour("PRIVATE KEY", &der))
    }

    /// Reads the one private key of a PEM text, as `catalog-mirror keygen` and `openssl genpkey` write it.
    ///
    /// # Errors
    /// [`KeyError`], which never quotes the text.
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
            // Such as `ENCRYPTED PRIVATE KEY` and `ENCRYPTED SIGSTORE PRIVATE KEY`.
            (None, _) if text.windows(9).any(|part| part == b"ENCRYPTED") => Err(KeyError::Encrypted),
            (None, _) => Err(KeyError::None { wanted: "PRIVATE KEY" }),
        }
    }

    /// The key that verifies.
    pub fn public(&self) -> PublicKey {
        let der = [&SPKI_HEAD[..], self.0.public_key().as_ref()].concat();
        PublicKey::from_der(der).expect("what was just put together is a key")
    }

    /// The signature of a message.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

/// Only which key it is.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public().id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_reads_back_and_signs() {
        let pem = SigningKey::generate_pem().unwrap();
        let key = SigningKey::from_pem(pem.as_bytes()).unwrap();
        key.public().verify(b"message", &key.sign(b"message")).unwrap();
        assert_ne!(pem, SigningKey::generate_pem().unwrap());
    }

    #[test]
    fn it_does_not_print() {
        let pem = SigningKey::generate_pem().unwrap();
        let key = SigningKey::from_pem(pem.as_bytes()).unwrap();
        assert_eq!(format!("{key:?}"), format!("SigningKey({})", key.public().id()));
    }

    #[test]
    fn what_is_no_such_key_is_refused() {
        let ecdsa = ring::signature::EcdsaKeyPair::generate_pkcs8(
            &ring::signature::ECDSA_P256_SHA256_ASN1_SIGNING,
            &SystemRandom::new(),
        )
        .unwrap();
        let ecdsa = armour("PRIVATE KEY", ecdsa.as_ref());
        let one = SigningKey::generate_pem().unwrap();
        let public = SigningKey::from_pem(one.as_bytes()).unwrap().public().to_pem();
        let encrypted = armour("ENCRYPTED SIGSTORE PRIVATE KEY", b"{}");
        let refused = |text: &str| SigningKey::from_pem(text.as_bytes()).unwrap_err();
        assert!(matches!(refused(&ecdsa), KeyError::NotEd25519));
        assert!(matches!(refused(&format!("{one}{one}")), KeyError::NotEd25519));
        assert!(matches!(refused(&public), KeyError::None { wanted: "PRIVATE KEY" }));
        assert!(matches!(refused(&encrypted), KeyError::Encrypted));
        assert!(matches!(refused(&one.replace("MC4C", "!!!!")), KeyError::Pem));
        assert!(matches!(refused(""), KeyError::None { .. }));
    }
}
