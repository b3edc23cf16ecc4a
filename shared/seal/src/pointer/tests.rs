use std::time::{Duration, UNIX_EPOCH};

use layout::{Availability, SnapshotRef, SourceRef};

use super::*;

fn key() -> SigningKey {
    SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap()
}

fn name(text: &str) -> CatalogName {
    text.parse().unwrap()
}

fn current() -> Current {
    Current {
        serial: 7,
        content_hash: Sha256::of(b"lines"),
        snapshot: SnapshotRef::new(&name("demo"), Sha256::of(b"lines"), b"{}"),
        source: SourceRef {
            reference: "quay.io/a/b:c".into(),
            digest: "sha256:00".into(),
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

fn signed(keys: &[&SigningKey]) -> Vec<u8> {
    let keys = keys.iter().map(|key| (*key).clone()).collect();
    Signer::new(keys, Vec::new()).sign(&name("demo"), current()).to_bytes()
}

fn trust(keys: &[&SigningKey]) -> Trust {
    Trust::new(keys.iter().map(|key| key.public()).collect())
}

#[test]
fn one_of_several_keys_on_either_side_is_enough() {
    let (a, b, c) = (key(), key(), key());
    for (signers, trusted, by) in [
        (&[&a][..], &[&a][..], &a),
        (&[&a, &b], &[&b], &b),
        (&[&b], &[&a, &b, &c], &b),
        (&[&a, &c], &[&c, &a], &c),
    ] {
        let found = trust(trusted).verify(&name("demo"), &signed(signers)).unwrap();
        assert_eq!(found, by.public().id());
    }
}

#[test]
fn what_was_not_signed_by_a_trusted_key_is_not_trusted() {
    let (a, b) = (key(), key());
    let judged = |trusted: &[&SigningKey], document: &[u8]| trust(trusted).verify(&name("demo"), document).unwrap_err();
    assert!(matches!(judged(&[&a], &current().to_bytes()), TrustError::Unsigned));
    assert!(matches!(judged(&[&a], b"{"), TrustError::Malformed(_)));
    assert!(matches!(judged(&[&a], b"[]"), TrustError::Unsigned));
    assert!(matches!(judged(&[], &signed(&[&a])), TrustError::Unknown(_)));
    let TrustError::Unknown(found) = judged(&[&a], &signed(&[&b])) else {
        panic!("another key is not unknown")
    };
    assert_eq!(found, [b.public().id().to_string()]);
}

#[test]
fn a_signature_is_for_one_catalog() {
    let key = key();
    let judged = trust(&[&key]).verify(&name("demo2"), &signed(&[&key]));
    assert!(matches!(judged, Err(TrustError::Wrong(_))));
}

#[test]
fn no_member_can_be_altered_added_or_taken_away() {
    let key = key();
    let document = String::from_utf8(signed(&[&key])).unwrap();
    for (from, to) in [
        ("\"serial\": 7", "\"serial\": 8"),
        ("sha256:00", "sha256:01"),
        ("\"previous\": []", "\"previous\": [null]"),
        ("\"renderVersion\": 1,", ""),
        ("{\n", "{\"new\": 1,\n"),
        ("\"formatVersion\": 1", "\"formatVersion\": 2"),
    ] {
        let altered = document.replacen(from, to, 1);
        assert_ne!(altered, document, "{from}");
        let judged = trust(&[&key]).verify(&name("demo"), altered.as_bytes());
        assert!(matches!(judged, Err(TrustError::Wrong(_))), "{from}: {judged:?}");
    }
}

#[test]
fn a_signature_that_is_no_base64_or_another_keys_is_wrong() {
    let (a, b) = (key(), key());
    let signed = Signer::new(vec![a.clone(), b.clone()], Vec::new()).sign(&name("demo"), current());
    for sig in ["", "?", &signed.signatures[1].sig] {
        let mut altered = signed.clone();
        altered.signatures = vec![Signature {
            keyid: a.public().id().to_string(),
            sig: sig.to_owned(),
        }];
        let judged = trust(&[&a, &b]).verify(&name("demo"), &altered.to_bytes());
        assert!(matches!(judged, Err(TrustError::Wrong(_))), "{sig}");
    }
}

#[test]
fn how_the_document_is_written_does_not_matter_but_a_newer_members_content_does() {
    let key = key();
    let document: Value = serde_json::from_slice(&signed(&[&key])).unwrap();
    trust(&[&key])
        .verify(&name("demo"), &serde_json::to_vec(&document).unwrap())
        .unwrap();

    // A newer version adds a member, and signs it.
    let mut newer = document;
    newer["colour"] = json!("blue");
    let members = newer.as_object_mut().unwrap();
    members.remove(SIGNATURES);
    let sig = STANDARD.encode(key.sign(&message(&name("demo"), &newer)));
    newer[SIGNATURES] = json!([{"keyid": key.public().id().to_string(), "sig": sig}]);
    trust(&[&key])
        .verify(&name("demo"), newer.to_string().as_bytes())
        .unwrap();
    newer["colour"] = json!("red");
    assert!(
        trust(&[&key])
            .verify(&name("demo"), newer.to_string().as_bytes())
            .is_err()
    );
}

/// What another program has to sign: a change here breaks every signature there is.
#[test]
fn the_message_is_as_documented() {
    let document: Value = serde_json::from_slice(&current().to_bytes()).unwrap();
    let message = String::from_utf8(message(&name("demo"), &document)).unwrap();
    let hash = Sha256::of(b"lines");
    let expected = format!(
        r#"{{"catalog":"demo","current":{{"contentHash":"{hash}","formatVersion":1,"previous":[],"publishedAt":"2026-09-21T14:13:20Z","renderVersion":1,"serial":7,"snapshot":{{"key":"catalogs/demo/{hash}/snapshot.json","sha256":"{}"}},"source":{{"digest":"sha256:00","ref":"quay.io/a/b:c"}}}}}}"#,
        Sha256::of(b"{}")
    );
    assert_eq!(
        message,
        format!(
            "DSSEv1 {} {PAYLOAD_TYPE} {} {expected}",
            PAYLOAD_TYPE.len(),
            expected.len()
        )
    );
}

#[test]
fn to_sign_again_changes_nothing() {
    let key = key();
    let signer = Signer::new(vec![key], Vec::new());
    let once = signer.sign(&name("demo"), current());
    assert_eq!(signer.sign(&name("demo"), once.clone()), once);
}
