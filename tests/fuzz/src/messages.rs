use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use trust::openpgp::read_keyring;
use trust::policy::Keyring;

/// Reads fixtures made by GnuPG or skopeo; see `fixtures/make` in `shared/core/trust`.
macro_rules! fixtures {
    ($($name:literal)*) => {
        [$(include_bytes!(concat!("../../../shared/core/trust/src/openpgp/fixtures/", $name))),*]
    };
}

pub(crate) const KEYS: [&[u8]; 6] =
    fixtures!("rsa.pub" "rsa.asc" "early.pub" "ecdsa.pub" "sub.pub" "gone.pub");

/// OpenPGP messages, valid and invalid.
pub(crate) const MESSAGES: [&[u8]; 12] = fixtures!(
    "plain.sig" "partial.sig" "skopeo.sig" "early.sig" "ecdsa.sig" "sub.sig" "gone.sig" "both.sig" "sha1.sig" "text.sig" "notation.sig"
    "unsigned.sig"
);

/// All payloads that these keys have signed, each with the fingerprint of its key.
static SIGNED: LazyLock<BTreeSet<(Vec<u8>, String)>> = LazyLock::new(|| {
    let signed = MESSAGES
        .iter()
        .filter_map(|message| RING.open(message).ok());
    let signed: BTreeSet<_> = signed.map(|signed| (signed.payload, signed.key)).collect();
    assert_eq!(signed.len(), 7);
    signed
});

static RING: LazyLock<Arc<dyn Keyring>> = LazyLock::new(|| {
    let keys = KEYS.map(<[u8]>::to_vec);
    read_keyring(&keys).expect("keys")
});

/// Reads bytes as an OpenPGP message and as a key file: only signed payloads are accepted, and only
/// for their own keys.
///
/// # Panics
/// If another payload or key is accepted.
pub(crate) fn openpgp(input: &[u8]) {
    if let Ok(signed) = RING.open(input) {
        assert!(SIGNED.contains(&(signed.payload, signed.key)));
    }
    let Ok(ring) = read_keyring(&[input.to_vec()]) else {
        return;
    };
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
