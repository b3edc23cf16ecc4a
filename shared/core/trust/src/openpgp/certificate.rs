use crate::policy::OpenPgpError;
use pgp::composed::{SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{
    PublicKey, PublicSubkey, Signature, SignatureConfig, SignatureType, Subpacket, SubpacketData,
};
use pgp::ser::Serialize;
use pgp::types::{KeyDetails, PublicParams, SignedUser, Tag, Timestamp};

use crate::openpgp::packets::error;

/// Minimum size of an RSA modulus, in bits: the minimum for keys of cosign too.
const RSA_BITS_MIN: u16 = 2048;

/// Key of a certificate that may sign, and the time in which it may, in seconds since 1970.
#[derive(Debug)]
pub(crate) struct CertificateKey {
    packet: KeyPacket,
    /// Fingerprint of the primary key of the certificate, in lower-case hex.
    pub(crate) primary: String,
    /// Fingerprint of this key, in lower-case hex.
    pub(crate) fingerprint: String,
    pub(crate) created: u64,
    pub(crate) expiry: Option<u64>,
}

#[derive(Debug)]
enum KeyPacket {
    Primary(PublicKey),
    Sub(PublicSubkey),
}

/// Returns the keys of a certificate that may sign.
///
/// # Errors
/// Fails if there is none that could sign at any time.
pub(crate) fn signing_keys(key: &SignedPublicKey) -> Result<Vec<CertificateKey>, OpenPgpError> {
    let fingerprint = key.fingerprint().to_string();
    let refused = |why: &str| Err(error(format!("the key {fingerprint} {why}")));
    // The validity of a revocation is not checked: the owner of the file put it there.
    if !key.details.revocation_signatures.is_empty() {
        return refused("has been revoked");
    }
    let Some(newest) = newest(self_signatures(key)) else {
        return refused("has no valid signature of its own");
    };
    let expiry = expiry(key.created_at(), newest);
    let mut keys = Vec::new();
    if signs(newest) && is_strong(key.public_params()) {
        keys.push(CertificateKey {
            created: seconds(key.created_at()),
            expiry,
            primary: fingerprint.clone(),
            fingerprint: fingerprint.clone(),
            packet: KeyPacket::Primary(key.primary_key.clone()),
        });
    }
    for subkey in &key.public_subkeys {
        keys.extend(signing_subkey(&key.primary_key, expiry, subkey));
    }
    if keys.is_empty() {
        return refused("cannot sign, or is too weak or of a kind that is not supported");
    }
    Ok(keys)
}

impl CertificateKey {
    /// Returns true if this key has made the signature, at any time.
    pub(crate) fn has_made(&self, signature: &Signature, data: &[u8]) -> bool {
        match &self.packet {
            KeyPacket::Primary(key) => signature.verify(key, data).is_ok(),
            KeyPacket::Sub(key) => signature.verify(key, data).is_ok(),
        }
    }
}

/// Returns a subkey that may sign. It must be bound for signing and have signed the primary key in
/// return (RFC 9580, section 10.1.5). It expires no later than the primary key.
fn signing_subkey(
    primary: &PublicKey,
    end: Option<u64>,
    subkey: &SignedPublicSubKey,
) -> Option<CertificateKey> {
    if !is_strong(subkey.key.public_params()) {
        return None;
    }
    let mut bindings = Vec::new();
    for signature in &subkey.signatures {
        if signature.typ() == Some(SignatureType::SubkeyRevocation) {
            return None;
        }
        let binding = signature.verify_subkey_binding(primary, &subkey.key);
        if binding.is_ok() {
            bindings.push(signature);
        }
    }
    let newest = newest(bindings)?;
    let back = newest.embedded_signature()?;
    back.verify_primary_key_binding(&subkey.key, primary).ok()?;
    if !newest.key_flags().sign() {
        return None;
    }
    let own = expiry(subkey.key.created_at(), newest);
    Some(CertificateKey {
        packet: KeyPacket::Sub(subkey.key.clone()),
        primary: primary.fingerprint().to_string(),
        fingerprint: subkey.key.fingerprint().to_string(),
        created: seconds(subkey.key.created_at()),
        expiry: [own, end].into_iter().flatten().min(),
    })
}

/// Returns the signatures that the primary key made over itself and its names. Signatures of others
/// do not matter.
fn self_signatures(key: &SignedPublicKey) -> Vec<&Signature> {
    let primary = &key.primary_key;
    let mut own = Vec::new();
    for signature in &key.details.direct_signatures {
        if signature.verify_key(primary).is_ok() {
            own.push(signature);
        }
    }
    for name in &key.details.users {
        let certified = name
            .signatures
            .iter()
            .filter(|signature| certifies(primary, name, signature));
        let certified: Vec<&Signature> = certified.collect();
        // Another certifier can revoke only its own certification.
        let is_revoked = certified
            .iter()
            .any(|signature| signature.typ() == Some(SignatureType::CertRevocation));
        if !is_revoked {
            own.extend(certified);
        }
    }
    own
}

/// Returns true if the key itself has signed the name.
fn certifies(primary: &PublicKey, name: &SignedUser, signature: &Signature) -> bool {
    let certified = signature.verify_certification(primary, Tag::UserId, &name.id);
    certified.is_ok()
}

/// Returns the newest signature, which is the one that counts.
fn newest(signatures: Vec<&Signature>) -> Option<&Signature> {
    signatures
        .into_iter()
        .filter(|signature| {
            let hash = signature.hash_alg();
            // Many keys in use were certified with SHA-1. The key file itself is trusted, so an
            // attacker gains nothing from it.
            hash.is_some_and(|hash| hash == HashAlgorithm::Sha1 || is_trusted(hash))
        })
        .max_by_key(|signature| signature.created())
}

/// Returns true for hashes that a signature of an image may use.
pub(crate) const fn is_trusted(hash: HashAlgorithm) -> bool {
    matches!(
        hash,
        HashAlgorithm::Sha256
            | HashAlgorithm::Sha384
            | HashAlgorithm::Sha512
            | HashAlgorithm::Sha3_256
            | HashAlgorithm::Sha3_512
    )
}

fn is_strong(params: &PublicParams) -> bool {
    match params {
        // RFC 9580, section 3.2: the modulus comes first, after its number of bits.
        PublicParams::RSA(rsa) => rsa.to_bytes().is_ok_and(|bytes| match bytes[..] {
            [high, low, ..] => u16::from_be_bytes([high, low]) >= RSA_BITS_MIN,
            _ => false,
        }),
        PublicParams::ECDSA(_)
        | PublicParams::EdDSALegacy(_)
        | PublicParams::Ed25519(_)
        | PublicParams::Ed448(_) => true,
        _ => false,
    }
}

fn expiry(created: Timestamp, signature: &Signature) -> Option<u64> {
    match signature.key_expiration_time()?.as_secs() {
        0 => None,
        lifetime => Some(seconds(created) + u64::from(lifetime)),
    }
}

/// Returns true if the primary key may sign. Old certificates have no key flags; their primary key
/// may.
fn signs(signature: &Signature) -> bool {
    let has_flags =
        hashed(signature).any(|subpacket| matches!(subpacket.data, SubpacketData::KeyFlags(_)));
    !has_flags || signature.key_flags().sign()
}

/// Returns the subpackets that a signature covers.
pub(crate) fn hashed(signature: &Signature) -> impl Iterator<Item = &Subpacket> {
    signature
        .config()
        .into_iter()
        .flat_map(SignatureConfig::hashed_subpackets)
}

pub(crate) fn seconds(time: Timestamp) -> u64 {
    u64::from(time.as_secs())
}
