use testkit::{CurrentBuilder, snapshot};

use super::*;

fn key() -> SigningKey {
    SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap()
}

fn name(text: &str) -> CatalogName {
    text.parse().unwrap()
}

fn current() -> Current {
    let current = CurrentBuilder::new(&snapshot(&[])).serial(7);
    current.source("quay.io/a/b:c", "sha256:00").build()
}

fn signed(keys: &[&SigningKey]) -> Vec<u8> {
    let keys = keys.iter().map(|key| (*key).clone()).collect();
    Signer::new(keys, Vec::new())
        .sign(&name("demo"), current())
        .to_bytes()
}

/// Verifies a document of `demo` with these keys.
fn verify(keys: &[&SigningKey], document: &[u8]) -> Result<Sha256, TrustError> {
    let trust = Trust::new(keys.iter().map(|key| key.public()).collect());
    trust.verify(&name("demo"), document)
}

#[test]
fn verify_accepts_one_common_key() {
    let (a, b, c) = (key(), key(), key());
    for (signers, trusted, by) in [
        (&[&a][..], &[&a][..], &a),
        (&[&a, &b], &[&b], &b),
        (&[&b], &[&a, &b, &c], &b),
        (&[&a, &c], &[&c, &a], &c),
    ] {
        assert_eq!(verify(trusted, &signed(signers)).unwrap(), by.public().id());
    }
}

#[test]
fn verify_refuses_documents_without_a_trusted_signature() {
    let (a, b) = (key(), key());
    let refusal = |trusted: &[&SigningKey], document: &[u8]| verify(trusted, document).unwrap_err();
    assert!(matches!(
        refusal(&[&a], &current().to_bytes()),
        TrustError::Unsigned
    ));
    assert!(matches!(refusal(&[&a], b"{"), TrustError::Malformed(_)));
    assert!(matches!(refusal(&[&a], b"[]"), TrustError::Unsigned));
    assert!(matches!(
        refusal(&[], &signed(&[&a])),
        TrustError::Unknown(_)
    ));
    let TrustError::Unknown(found) = refusal(&[&a], &signed(&[&b])) else {
        panic!("another key is not unknown")
    };
    assert_eq!(found, [b.public().id().to_string()]);
}

#[test]
fn verify_refuses_a_signature_for_another_catalog() {
    let key = key();
    let verified = Trust::new(vec![key.public()]).verify(&name("demo2"), &signed(&[&key]));
    assert!(matches!(verified, Err(TrustError::Wrong(_))));
}

#[test]
fn verify_refuses_altered_added_or_removed_fields() {
    let key = key();
    let document = String::from_utf8(signed(&[&key])).unwrap();
    for (from, to) in [
        ("\"serial\": 7", "\"serial\": 8"),
        ("sha256:00", "sha256:01"),
        ("\"previous\": []", "\"previous\": [null]"),
        ("\"renderVersion\": 1,", ""),
        ("{\n", "{\"new\": 1,\n"),
        ("\"formatVersion\": 3", "\"formatVersion\": 4"),
    ] {
        let altered = document.replacen(from, to, 1);
        assert_ne!(altered, document, "{from}");
        let verified = verify(&[&key], altered.as_bytes());
        assert!(
            matches!(verified, Err(TrustError::Wrong(_))),
            "{from}: {verified:?}"
        );
    }
}

#[test]
fn verify_refuses_broken_or_foreign_signatures() {
    let (a, b) = (key(), key());
    let signed = Signer::new(vec![a.clone(), b.clone()], Vec::new()).sign(&name("demo"), current());
    for sig in ["", "?", &signed.signatures[1].sig] {
        let mut altered = signed.clone();
        altered.signatures = vec![Signature {
            keyid: a.public().id().to_string(),
            sig: sig.to_owned(),
        }];
        let verified = verify(&[&a, &b], &altered.to_bytes());
        assert!(matches!(verified, Err(TrustError::Wrong(_))), "{sig}");
    }
}

#[test]
fn verify_ignores_white_space_but_covers_unknown_fields() {
    let key = key();
    let document: Value = serde_json::from_slice(&signed(&[&key])).unwrap();
    verify(&[&key], document.to_string().as_bytes()).unwrap();

    // A newer version adds a field and signs it.
    let mut newer = document;
    newer["colour"] = json!("blue");
    let members = newer.as_object_mut().unwrap();
    members.remove(SIGNATURES);
    let sig = STANDARD.encode(key.sign(&message(&name("demo"), &newer)));
    newer[SIGNATURES] = json!([{"keyid": key.public().id().to_string(), "sig": sig}]);
    verify(&[&key], newer.to_string().as_bytes()).unwrap();
}

/// Other programs build the same message, and a change breaks every existing signature.
#[test]
fn message_matches_its_documentation() {
    let document: Value = serde_json::from_slice(&current().to_bytes()).unwrap();
    let message = String::from_utf8(message(&name("demo"), &document)).unwrap();
    let (hash, all, object) = (current().content_hash, current().all, current().snapshot);
    let reference = |object: model::ObjectRef| {
        format!(
            r#"{{"key":"{}","size":{}}}"#,
            object.key(),
            object.digest.size
        )
    };
    let (gzip, zstd, snapshot) = (reference(all.gzip), reference(all.zstd), reference(object));
    let expected = format!(
        r#"{{"catalog":"demo","current":{{"all":{{"gzip":{gzip},"zstd":{zstd}}},"contentHash":"{hash}","formatVersion":3,"metas":0,"packages":0,"previous":[],"publishedAt":"2026-09-21T14:19:20Z","renderVersion":1,"serial":7,"size":0,"snapshot":{snapshot},"source":{{"ref":"quay.io/a/b:c","revision":"sha256:00"}}}}}}"#
    );
    let (type_length, length) = (PAYLOAD_TYPE.len(), expected.len());
    let expected = format!("DSSEv1 {type_length} {PAYLOAD_TYPE} {length} {expected}");
    assert_eq!(message, expected);
}

#[test]
fn signing_twice_changes_nothing() {
    let key = key();
    let signer = Signer::new(vec![key], Vec::new());
    let once = signer.sign(&name("demo"), current());
    assert_eq!(signer.sign(&name("demo"), once.clone()), once);
}

#[test]
fn message_sorts_keys_and_drops_spaces() {
    let value: Value =
        serde_json::from_str(r#"{ "b": [1, {"y": null, "x": "\u00e9\""}], "a": true }"#).unwrap();
    let message = String::from_utf8(message(&name("demo"), &value)).unwrap();
    let signed = r#"{"catalog":"demo","current":{"a":true,"b":[1,{"x":"é\"","y":null}]}}"#;
    assert!(message.ends_with(signed), "{message}");
}
