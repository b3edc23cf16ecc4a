//! A publisher with a key that is always the same, and what it has signed.

use std::time::{Duration, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::STANDARD};
use layout::{Availability, CatalogName, Current, Document, Sha256, SnapshotRef, SourceRef};
use ring::signature::Ed25519KeyPair;
use seal::{PublicKey, Signer, SigningKey, Trust};
use serde_json::Value;

use crate::site::name;

const SEED: [u8; 32] = [7; 32];

/// The seed in PKCS#8 (RFC 8410, section 7).
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n\
    -----END PRIVATE KEY-----\n";

fn key() -> SigningKey {
    SigningKey::from_pem(KEY.as_bytes()).expect("a key")
}

pub(crate) fn public() -> PublicKey {
    key().public()
}

/// A signature of anything, in base64.
pub(crate) fn sign(message: &[u8]) -> String {
    let pair = Ed25519KeyPair::from_seed_unchecked(&SEED).expect("a seed");
    STANDARD.encode(pair.sign(message))
}

/// The one state that it has published. No clock is asked, so that what was kept of earlier runs is still what it was.
fn published() -> Current {
    let hash = Sha256::of(b"lines");
    Current {
        serial: 7,
        content_hash: hash,
        snapshot: SnapshotRef::new(&name(), hash, b"snapshot"),
        source: SourceRef {
            reference: "quay.io/ns/cat:v1".to_owned(),
            digest: format!("sha256:{hash}"),
            verified: None,
        },
        render_version: 1,
        published_at: UNIX_EPOCH + Duration::from_secs(1_790_000_000),
        brought_back: None,
        availability: Availability::Available,
        previous: Vec::new(),
        signatures: Vec::new(),
    }
}

pub(crate) fn signed() -> Vec<u8> {
    Signer::new(vec![key()], Vec::new())
        .sign(&name(), published())
        .to_bytes()
}

/// What is believed to be published is what was published, for a reader of JSON as for a reader of this document.
pub(crate) fn judge(input: &[u8]) {
    let trust = Trust::new(vec![public()]);
    let other: CatalogName = "other".parse().expect("a name");
    assert!(trust.verify(&other, input).is_err());
    if trust.verify(&name(), input).is_err() {
        return;
    }
    let text = String::from_utf8_lossy(input);
    assert_eq!(unsigned(input), unsigned(&signed()), "{text}");
    if let Ok(current) = Current::from_bytes(input) {
        let signatures = Vec::new();
        assert_eq!(Current { signatures, ..current }, published(), "{text}");
    }
}

fn unsigned(document: &[u8]) -> Value {
    let mut document: Value = serde_json::from_slice(document).expect("what was believed is JSON");
    document.as_object_mut().map(|members| members.remove("signatures"));
    document
}
