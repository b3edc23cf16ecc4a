//! A publisher with a fixed key, and the documents that it has signed.

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{CatalogName, Current, Document};
use ring::signature::Ed25519KeyPair;
use serde_json::Value;
use testkit::{CurrentBuilder, snapshot};
use trust::{PublicKey, Signer, SigningKey, Trust};

use crate::site::name;

/// Seed of the Ed25519 key.
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

/// Signs a message; returns base64.
pub(crate) fn sign(message: &[u8]) -> String {
    let pair = Ed25519KeyPair::from_seed_unchecked(&SEED).expect("a seed");
    STANDARD.encode(pair.sign(message))
}

/// Returns the only published state. It uses no clock, so that stored inputs stay valid.
fn published() -> Current {
    CurrentBuilder::new(&snapshot(&[])).serial(7).build()
}

pub(crate) fn signed() -> Vec<u8> {
    Signer::new(vec![key()], Vec::new())
        .sign(&name(), published())
        .to_bytes()
}

/// Checks that only the published state is trusted, both as JSON and as a document.
pub(crate) fn check(input: &[u8]) {
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
        assert_eq!(
            Current {
                signatures,
                ..current
            },
            published(),
            "{text}"
        );
    }
}

fn unsigned(document: &[u8]) -> Value {
    let mut document: Value =
        serde_json::from_slice(document).expect("a verified document is JSON");
    document
        .as_object_mut()
        .map(|members| members.remove("signatures"));
    document
}
