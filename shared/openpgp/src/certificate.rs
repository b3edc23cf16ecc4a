use pgp::{
    composed::{SignedPublicKey, SignedPublicSubKey},
    crypto::hash::HashAlgorithm,
    packet::{PublicKey, PublicSubkey, Signature, SignatureConfig, SignatureType, Subpacket, SubpacketData},
    ser::Serialize,
    types::{KeyDetails, PublicParams, SignedUser, Tag, Timestamp},
};
use policy::OpenPgpError;

use crate::error;

/// As for the keys of cosign.
const RSA_BITS_MIN: u16 = 2048;

/// A certificate, as far as it may sign.
#[derive(Debug)]
pub(crate) struct Certificate {
    /// In lower-case hex.
    pub(crate) fingerprint: String,
    pub(crate) keys: Vec<SigningKey>,
}

/// One of its keys, and when that may sign, in seconds since 1970.
#[derive(Debug)]
pub(crate) struct SigningKey {
    half: Half,
    pub(crate) created: u64,
    pub(crate) expiry: Option<u64>,
}

#[derive(Debug)]
enum Half {
    Primary(PublicKey),
    Sub(PublicSubkey),
}

impl Certificate {
    /// # Errors
    /// If there is no key in it that could sign at any time.
    pub(crate) fn new(key: &SignedPublicKey) -> Result<Self, OpenPgpError> {
        let fingerprint = key.fingerprint().to_string();
        let refused = |why: &str| Err(error(format!("the key {fingerprint} {why}")));
        // Whoever put it into the file meant it, so it is not asked whether it is valid.
        if !key.details.revocation_signatures.is_empty() {
            return refused("has been revoked");
        }
        let Some(newest) = newest(self_signatures(key)) else {
            return refused("has no valid signature of its own");
        };
        let expiry = expiry(key.created_at(), newest);
        let mut keys = Vec::new();
        if signs(newest) && is_strong(key.public_params()) {
            keys.push(SigningKey {
                created: seconds(key.created_at()),
                expiry,
                half: Half::Primary(key.primary_key.clone()),
            });
        }
        let subkeys = key.public_subkeys.iter();
        keys.extend(subkeys.filter_map(|subkey| signing_subkey(&key.primary_key, expiry, subkey)));
        match keys.is_empty() {
            true => refused("cannot sign, or is too weak or of a kind that is not supported"),
            false => Ok(Self { fingerprint, keys }),
        }
    }

    /// Those of its keys that may sign at some time.
    pub(crate) fn signing_fingerprints(&self) -> impl Iterator<Item = String> {
        self.keys.iter().map(SigningKey::fingerprint)
    }
}

impl SigningKey {
    /// Whether it has made this signature, at whatever time.
    pub(crate) fn has_made(&self, signature: &Signature, data: &[u8]) -> bool {
        match &self.half {
            Half::Primary(key) => signature.verify(key, data).is_ok(),
            Half::Sub(key) => signature.verify(key, data).is_ok(),
        }
    }

    fn fingerprint(&self) -> String {
        match &self.half {
            Half::Primary(key) => key.fingerprint().to_string(),
            Half::Sub(key) => key.fingerprint().to_string(),
        }
    }
}

/// A subkey that is bound for signing, with the signature back (RFC 9580, section 10.1.5). It lives no longer than the
/// primary key.
fn signing_subkey(primary: &PublicKey, end: Option<u64>, subkey: &SignedPublicSubKey) -> Option<SigningKey> {
    let is_revocation = |signature: &Signature| signature.typ() == Some(SignatureType::SubkeyRevocation);
    if subkey.signatures.iter().any(is_revocation) || !is_strong(subkey.key.public_params()) {
        return None;
    }
    let bound = |signature: &&Signature| signature.verify_subkey_binding(primary, &subkey.key).is_ok();
    let newest = newest(subkey.signatures.iter().filter(bound))?;
    let back = newest.embedded_signature()?;
    back.verify_primary_key_binding(&subkey.key, primary).ok()?;
    let own = expiry(subkey.key.created_at(), newest);
    newest.key_flags().sign().then(|| SigningKey {
        half: Half::Sub(subkey.key.clone()),
        created: seconds(subkey.key.created_at()),
        expiry: [own, end].into_iter().flatten().min(),
    })
}

/// Those over the primary key, and over it with a name, that it made itself; others' do not matter.
fn self_signatures(key: &SignedPublicKey) -> impl Iterator<Item = &Signature> {
    let primary = &key.primary_key;
    let direct = key.details.direct_signatures.iter();
    let direct = direct.filter(|signature| signature.verify_key(primary).is_ok());
    let names = key.details.users.iter().filter(|name| !is_revoked(primary, name));
    let named = names.flat_map(|name| {
        let own = |signature: &&Signature| signature.verify_certification(primary, Tag::UserId, &name.id).is_ok();
        name.signatures.iter().filter(own)
    });
    direct.chain(named)
}

/// By the key itself: whoever else has certified a name may take only that back.
fn is_revoked(primary: &PublicKey, name: &SignedUser) -> bool {
    name.signatures.iter().any(|signature| {
        signature.typ() == Some(SignatureType::CertRevocation)
            && signature.verify_certification(primary, Tag::UserId, &name.id).is_ok()
    })
}

/// What was said last holds. Many keys in use were once certified with SHA-1; their file is trusted as it is, so nobody can
/// make use of that.
fn newest<'a>(signatures: impl Iterator<Item = &'a Signature>) -> Option<&'a Signature> {
    let is_sound = |signature: &&Signature| {
        signature
            .hash_alg()
            .is_some_and(|hash| hash == HashAlgorithm::Sha1 || is_trusted(hash))
    };
    signatures.filter(is_sound).max_by_key(|signature| signature.created())
}

/// Hashes that signatures of images may have.
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
        // RFC 9580, section 3.2: the modulus comes first, after the number of its bits.
        PublicParams::RSA(rsa) => rsa.to_bytes().is_ok_and(|bytes| match bytes[..] {
            [high, low, ..] => u16::from_be_bytes([high, low]) >= RSA_BITS_MIN,
            _ => false,
        }),
        PublicParams::ECDSA(_) | PublicParams::EdDSALegacy(_) | PublicParams::Ed25519(_) | PublicParams::Ed448(_) => {
            true
        }
        _ => false,
    }
}

fn expiry(created: Timestamp, signature: &Signature) -> Option<u64> {
    let lifetime = signature.key_expiration_time()?.as_secs();
    (lifetime > 0).then(|| seconds(created) + u64::from(lifetime))
}

/// A primary key without key flags may sign, as in certificates of old.
fn signs(signature: &Signature) -> bool {
    let has_flags = hashed(signature).any(|subpacket| matches!(subpacket.data, SubpacketData::KeyFlags(_)));
    !has_flags || signature.key_flags().sign()
}

/// What a signature says of itself, and signs.
pub(crate) fn hashed(signature: &Signature) -> impl Iterator<Item = &Subpacket> {
    let config = signature.config();
    config.into_iter().flat_map(SignatureConfig::hashed_subpackets)
}

pub(crate) fn seconds(time: Timestamp) -> u64 {
    u64::from(time.as_secs())
}
