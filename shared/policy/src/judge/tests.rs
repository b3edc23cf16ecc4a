use base64::{Engine, engine::general_purpose::STANDARD};
use seal::pae;
use testkit::Cosign;

use super::*;
use crate::{Files, Flaw};

/// What cosign 2.6.1 made: `cosign sign --key`, and the same with `--new-bundle-format`.
const DIGEST: &str = "sha256:5a57d71063c67896cf87e4824d3eb3ed5e6c474dae34fe47d62d2414968986c9";
const PAYLOAD: &str = include_str!("fixtures/payload.json");
const SIGNATURE: &str = include_str!("fixtures/payload.sig");
const BUNDLE: &str = include_str!("fixtures/bundle.json");
const KEY: &str = include_str!("fixtures/cosign.pub");

fn public(signer: &Cosign) -> PublicKey {
    PublicKey::from_der(signer.public()).unwrap()
}

fn attach(signer: &Cosign, payload: &str) -> Attached {
    Attached {
        payload: payload.as_bytes().to_vec(),
        signature: signer.sign(payload.as_bytes()),
    }
}

fn bundle(signer: &Cosign, payload_type: &str, statement: &str) -> Vec<u8> {
    let sig = signer.sign(&pae(payload_type, statement.as_bytes()));
    let payload = STANDARD.encode(statement);
    let envelope = serde_json::json!({"payload": payload, "payloadType": payload_type, "signatures": [{"sig": sig}]});
    serde_json::json!({"dsseEnvelope": envelope}).to_string().into_bytes()
}

fn cosigns() -> PublicKey {
    PublicKey::from_pem(KEY.as_bytes()).unwrap().remove(0)
}

fn image() -> ImageName {
    ImageName::parse("quay.io/ns/cat:v1")
}

fn real() -> Attached {
    Attached {
        payload: PAYLOAD.as_bytes().to_vec(),
        signature: SIGNATURE.to_owned(),
    }
}

fn attached(attached: Vec<Attached>) -> Found {
    Found {
        attached,
        ..Found::default()
    }
}

fn bundles(bundles: Vec<Vec<u8>>) -> Found {
    Found {
        bundles,
        ..Found::default()
    }
}

fn flaw(policy: &Policy, found: &Found) -> Flaw {
    match policy.judge(DIGEST, found) {
        Err(Rejection::Flawed { source, .. }) => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cosign_signed_is_verified() {
    let other = public(&Cosign::new());
    for (keys, found, method) in [
        (vec![cosigns()], attached(vec![real()]), "cosign"),
        (vec![other.clone(), cosigns()], attached(vec![real()]), "cosign"),
        (vec![cosigns()], bundles(vec![BUNDLE.into()]), "sigstore-bundle"),
        (vec![other, cosigns()], bundles(vec![BUNDLE.into()]), "sigstore-bundle"),
    ] {
        let policy = Policy::cosign(image(), keys);
        let verified = policy.judge(DIGEST, &found).unwrap();
        assert_eq!(verified.policy, policy.hash());
        assert_eq!(verified.by.len(), 1);
        assert_eq!(
            (verified.by[0].method.as_str(), &verified.by[0].key),
            (method, &cosigns().id().to_string())
        );
    }
}

#[test]
fn nothing_signed_is_rejected() {
    let policy = Policy::cosign(image(), vec![cosigns()]);
    let judged = policy.judge(DIGEST, &Found::default());
    assert!(matches!(judged, Err(Rejection::Unsigned { .. })));
}

#[test]
fn another_key_payload_or_signature_is_rejected() {
    let other = Policy::cosign(image(), vec![public(&Cosign::new())]);
    assert!(matches!(flaw(&other, &attached(vec![real()])), Flaw::Key));
    assert!(matches!(flaw(&other, &bundles(vec![BUNDLE.into()])), Flaw::Key));
    let policy = Policy::cosign(image(), vec![cosigns()]);
    let altered = Attached {
        payload: PAYLOAD.replace("ns/cat", "ns/dog").into_bytes(),
        ..real()
    };
    assert!(matches!(flaw(&policy, &attached(vec![altered])), Flaw::Key));
    let altered = Attached {
        signature: "?".to_owned(),
        ..real()
    };
    assert!(matches!(flaw(&policy, &attached(vec![altered])), Flaw::Base64));
    let altered = BUNDLE.replacen("eyJ", "eyK", 1).into_bytes();
    assert!(matches!(flaw(&policy, &bundles(vec![altered])), Flaw::Key));
    for bundle in [
        "{",
        "{}",
        r#"{"dsseEnvelope":null}"#,
        r#"{"dsseEnvelope":{"payload":""}}"#,
    ] {
        let flaw = flaw(&policy, &bundles(vec![bundle.into()]));
        assert!(matches!(flaw, Flaw::Payload(_) | Flaw::Envelope), "{flaw:?}");
    }
    let none: Vec<PublicKey> = Vec::new();
    assert!(matches!(
        flaw(&Policy::cosign(image(), none), &attached(vec![real()])),
        Flaw::Key
    ));
}

#[test]
fn a_signature_of_something_else_is_rejected() {
    let pair = Cosign::new();
    let policy = Policy::cosign(image(), vec![public(&pair)]);
    for (text, wanted) in [
        (Cosign::payload("sha256:00", "a.io/b"), "digest"),
        (
            Cosign::payload(DIGEST, "a.io/b").replace("cosign container image", "atomic container"),
            "type",
        ),
        ("{}".to_owned(), "payload"),
        ("nothing".to_owned(), "payload"),
        (
            Cosign::payload(DIGEST, "a.io/b").replace("\"identity\"", "\"more\":1,\"identity\""),
            "payload",
        ),
    ] {
        let found = match flaw(&policy, &attached(vec![attach(&pair, &text)])) {
            Flaw::Digest(_) => "digest",
            Flaw::Type(_) => "type",
            Flaw::Payload(_) => "payload",
            other => panic!("{other:?}"),
        };
        assert_eq!(found, wanted, "{text}");
    }
    let statement = |kind: &str, hex: &str| {
        format!(r#"{{"_type":"x","subject":[{{"digest":{{"sha256":"{hex}"}}}}],"predicateType":"{kind}"}}"#)
    };
    let in_toto = "application/vnd.in-toto+json";
    let sign = "https://sigstore.dev/cosign/sign/v1";
    let hex = &DIGEST["sha256:".len()..];
    let right = bundle(&pair, in_toto, &statement(sign, hex));
    assert_eq!(
        policy.judge(DIGEST, &bundles(vec![right])).unwrap().by[0].method,
        "sigstore-bundle"
    );
    let other = bundle(&pair, in_toto, &statement(sign, "00"));
    assert!(matches!(flaw(&policy, &bundles(vec![other])), Flaw::Digest(_)));
    let sbom = bundle(&pair, in_toto, &statement("https://spdx.dev/Document", hex));
    assert!(matches!(flaw(&policy, &bundles(vec![sbom])), Flaw::Type(_)));
    let other = bundle(&pair, "text/plain", &statement(sign, hex));
    assert!(matches!(flaw(&policy, &bundles(vec![other])), Flaw::Type(_)));
}

#[test]
fn a_right_signature_is_found_among_wrong_ones_and_the_best_flaw_is_told() {
    let (pair, other) = (Cosign::new(), Cosign::new());
    let policy = Policy::cosign(image(), vec![public(&pair)]);
    let right = attach(&pair, &Cosign::payload(DIGEST, "a.io/b"));
    let foreign = attach(&other, &Cosign::payload(DIGEST, "a.io/b"));
    let old = attach(&pair, &Cosign::payload("sha256:00", "a.io/b"));
    let found = attached(vec![foreign.clone(), old.clone(), right]);
    assert_eq!(policy.judge(DIGEST, &found).unwrap().by.len(), 1);
    assert!(matches!(flaw(&policy, &attached(vec![old, foreign])), Flaw::Digest(_)));
}

#[test]
fn a_policy_json_compares_names_too() {
    let pair = Cosign::new();
    let pem = public(&pair).to_pem();
    let policy = |identity: &str| {
        let text = format!(r#"{{"default":[{{"type":"sigstoreSigned","keyPath":"/key"{identity}}}]}}"#);
        let files = Files {
            read: &|_| Ok(pem.clone().into_bytes()),
            keyrings: None,
        };
        Policy::containers(image(), text.as_bytes(), &files).unwrap()
    };
    let signed = |name: &str| attached(vec![attach(&pair, &Cosign::payload(DIGEST, name))]);
    let by_default = policy("");
    by_default.judge(DIGEST, &signed("quay.io/ns/cat:v1")).unwrap();
    assert!(matches!(
        flaw(&by_default, &signed("quay.io/ns/cat")),
        Flaw::Identity(_)
    ));
    let repository = policy(r#","signedIdentity":{"type":"matchRepository"}"#);
    repository.judge(DIGEST, &signed("quay.io/ns/cat")).unwrap();
    assert!(matches!(
        flaw(&repository, &signed("quay.io/ns/dog")),
        Flaw::Identity(_)
    ));
    assert!(matches!(
        flaw(&repository, &bundles(vec![BUNDLE.into()])),
        Flaw::Unnamed
    ));
}

#[test]
fn another_policy_has_another_hash() {
    let (a, b) = (public(&Cosign::new()), public(&Cosign::new()));
    let hash = |image: &str, keys: &[&PublicKey]| {
        let keys = keys.iter().map(|key| (*key).clone()).collect();
        Policy::cosign(ImageName::parse(image), keys).hash()
    };
    let first = hash("a.io/b:v1", &[&a, &b]);
    assert_eq!(first, hash("a.io/b:v1", &[&b, &a]));
    let keys = vec![a.clone(), b.clone()];
    let requirement = Requirement::Sigstore { keys, identity: None };
    let also_of_manifests = Policy::containers_of(ImageName::parse("a.io/b:v1"), vec![requirement]);
    for other in [
        also_of_manifests.hash(),
        hash("a.io/b:v1", &[&a]),
        hash("a.io/b:v2", &[&a, &b]),
        hash("a.io/b:v1", &[]),
    ] {
        assert_ne!(first, other);
    }
}

/// Found by fuzzing: what is passed over was not looked at.
#[test]
fn what_is_no_json_is_no_bundle_whatever_is_signed_in_it() {
    let policy = Policy::cosign(image(), vec![cosigns()]);
    let at = BUNDLE.find("vnd.dev.sigstore").unwrap();
    for not_text in [&b"\xff"[..], br"\ud800", br"\x"] {
        let (head, rest) = BUNDLE.as_bytes().split_at(at);
        let altered = [head, not_text, rest].concat();
        assert!(matches!(flaw(&policy, &bundles(vec![altered])), Flaw::Payload(_)));
    }
}
