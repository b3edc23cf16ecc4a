use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use ::openpgp::Rpgp;
use ::policy::{Keyring, Keyrings};

/// What GnuPG and skopeo made; `shared/openpgp` says how.
macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../../shared/openpgp/src/fixtures/", $name))
    };
}

pub(crate) const KEYS: [&[u8]; 6] = [
    fixture!("rsa.pub"),
    fixture!("rsa.asc"),
    fixture!("early.pub"),
    fixture!("ecdsa.pub"),
    fixture!("sub.pub"),
    fixture!("gone.pub"),
];

/// Some of them are right.
pub(crate) const MESSAGES: [&[u8]; 12] = [
    fixture!("plain.sig"),
    fixture!("partial.sig"),
    fixture!("skopeo.sig"),
    fixture!("early.sig"),
    fixture!("ecdsa.sig"),
    fixture!("sub.sig"),
    fixture!("gone.sig"),
    fixture!("both.sig"),
    fixture!("sha1.sig"),
    fixture!("text.sig"),
    fixture!("notation.sig"),
    fixture!("unsigned.sig"),
];

/// All that was ever signed by these keys and may be taken: what, and by which.
static SIGNED: LazyLock<BTreeSet<(Vec<u8>, String)>> = LazyLock::new(|| {
    let signed = MESSAGES.iter().filter_map(|message| RING.open(message).ok());
    let signed: BTreeSet<_> = signed.map(|signed| (signed.payload, signed.key)).collect();
    assert_eq!(signed.len(), 7);
    signed
});

static RING: LazyLock<Arc<dyn Keyring>> = LazyLock::new(|| {
    let keys = KEYS.map(<[u8]>::to_vec);
    Rpgp.read(&keys).expect("keys")
});

/// Bytes where an OpenPGP message or a key ring should be: of messages only what the keys have signed is taken, and for
/// theirs; of rings, that a key is another's is believed of none.
///
/// # Panics
/// If it is otherwise.
pub fn openpgp(input: &[u8]) {
    if let Ok(signed) = RING.open(input) {
        assert!(SIGNED.contains(&(signed.payload, signed.key)));
    }
    let Ok(ring) = Rpgp.read(&[input.to_vec()]) else { return };
    let fingerprints = ring.fingerprints();
    assert!(!fingerprints.is_empty() && fingerprints.is_sorted());
    // Version 4 has 20 bytes, version 6 has 32 (RFC 9580, section 5.5.4).
    assert!(
        fingerprints
            .iter()
            .all(|fingerprint| matches!(fingerprint.len(), 40 | 64))
    );
    for message in MESSAGES {
        if let Ok(signed) = ring.open(message) {
            assert!(SIGNED.contains(&(signed.payload, signed.key)));
        }
    }
}
