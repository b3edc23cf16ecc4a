use crate::pae;
use base64::{Engine, engine::general_purpose::STANDARD};
use model::SignedBy;
use testkit::{Cosign, variant};

use super::*;
use crate::policy::KeySources;

/// Digest, payload, signature and bundle made by cosign 2.6.1 with `cosign sign --key` and
/// `--new-bundle-format`.
const DIGEST: &str = "sha256:5a57d71063c67896cf87e4824d3eb3ed5e6c474dae34fe47d62d2414968986c9";
const PAYLOAD: &str = include_str!("fixtures/payload.json");
const SIGNATURE: &str = include_str!("fixtures/payload.sig");
const BUNDLE: &str = include_str!("fixtures/bundle.json");
const KEY: &str = include_str!("fixtures/cosign.pub");

fn public(signer: &Cosign) -> PublicKey {
    PublicKey::from_der(signer.public()).unwrap()
}

fn attach(signer: &Cosign, payload: &str) -> AttachedSignature {
    AttachedSignature {
        payload: payload.as_bytes().to_vec(),
        signature: signer.sign(payload.as_bytes()),
    }
}

fn bundle(signer: &Cosign, payload_type: &str, statement: &str) -> Vec<u8> {
    let sig = signer.sign(&pae(payload_type, statement.as_bytes()));
    let payload = STANDARD.encode(statement);
    let envelope = serde_json::json!({"payload": payload, "payloadType": payload_type, "signatures": [{"sig": sig}]});
    serde_json::json!({"dsseEnvelope": envelope})
        .to_string()
        .into_bytes()
}

fn cosigns() -> PublicKey {
    PublicKey::from_pem(KEY.as_bytes()).unwrap().remove(0)
}

fn image() -> ImageReference {
    ImageReference::as_written("quay.io/ns/cat:v1")
}

fn real() -> AttachedSignature {
    AttachedSignature {
        payload: PAYLOAD.as_bytes().to_vec(),
        signature: SIGNATURE.to_owned(),
    }
}

fn attached(attached: Vec<AttachedSignature>) -> ImageSignatures {
    ImageSignatures {
        attached,
        ..ImageSignatures::default()
    }
}

fn bundles(bundles: Vec<Vec<u8>>) -> ImageSignatures {
    ImageSignatures {
        bundles,
        ..ImageSignatures::default()
    }
}

/// Returns the reason for which signatures are refused.
#[track_caller]
fn refusal(policy: &Policy, found: &ImageSignatures) -> String {
    match policy.verify(DIGEST, found) {
        Err(VerifyError::Invalid { source, .. }) => variant(&source),
        other => panic!("{other:?}"),
    }
}

#[test]
fn verify_accepts_signatures_of_cosign() {
    let other = public(&Cosign::new());
    for (keys, found, method) in [
        (vec![cosigns()], attached(vec![real()]), "cosign"),
        (
            vec![other.clone(), cosigns()],
            attached(vec![real()]),
            "cosign",
        ),
        (
            vec![cosigns()],
            bundles(vec![BUNDLE.into()]),
            "sigstore-bundle",
        ),
        (
            vec![other, cosigns()],
            bundles(vec![BUNDLE.into()]),
            "sigstore-bundle",
        ),
    ] {
        let policy = Policy::cosign(image(), keys);
        let by = SignedBy {
            method: method.to_owned(),
            key: cosigns().id().to_string(),
        };
        let expected = Verified {
            policy: policy.hash(),
            by: vec![by],
        };
        assert_eq!(policy.verify(DIGEST, &found).unwrap(), expected);
        let unsigned = policy.verify(DIGEST, &ImageSignatures::default());
        assert!(matches!(unsigned, Err(VerifyError::Unsigned { .. })));
    }
}

#[test]
fn verify_refuses_another_key_payload_or_signature() {
    let by = |keys: Vec<PublicKey>| Policy::cosign(image(), keys);
    let altered_payload = AttachedSignature {
        payload: PAYLOAD.replace("ns/cat", "ns/dog").into_bytes(),
        ..real()
    };
    let no_signature = AttachedSignature {
        signature: "?".to_owned(),
        ..real()
    };
    let altered_bundle = BUNDLE.replacen("eyJ", "eyK", 1).into_bytes();
    let other = || vec![public(&Cosign::new())];
    for (keys, found, wanted) in [
        (other(), attached(vec![real()]), "key"),
        (other(), bundles(vec![BUNDLE.into()]), "key"),
        (Vec::new(), attached(vec![real()]), "key"),
        (vec![cosigns()], attached(vec![altered_payload]), "key"),
        (vec![cosigns()], attached(vec![no_signature]), "base64"),
        (vec![cosigns()], bundles(vec![altered_bundle]), "key"),
    ] {
        assert_eq!(refusal(&by(keys), &found), wanted, "{found:?}");
    }
    let refused = |bundle: Vec<u8>| refusal(&by(vec![cosigns()]), &bundles(vec![bundle]));
    for (bundle, wanted) in [
        ("{", "payload"),
        ("{}", "envelope"),
        (r#"{"dsseEnvelope":null}"#, "envelope"),
        (r#"{"dsseEnvelope":{"payload":""}}"#, "payload"),
    ] {
        assert_eq!(refused(bundle.into()), wanted, "{bundle}");
    }
    // Found by fuzzing: the JSON library did not check the parts that it skipped.
    let at = BUNDLE.find("vnd.dev.sigstore").unwrap();
    for not_text in [&b"\xff"[..], br"\ud800", br"\x"] {
        let (head, rest) = BUNDLE.as_bytes().split_at(at);
        assert_eq!(refused([head, not_text, rest].concat()), "payload");
    }
}

#[test]
fn verify_refuses_signatures_of_other_content() {
    let pair = Cosign::new();
    let policy = Policy::cosign(image(), vec![public(&pair)]);
    let payload = Cosign::payload(DIGEST, "a.io/b");
    for (text, wanted) in [
        (Cosign::payload("sha256:00", "a.io/b"), "digest"),
        (
            payload.replace("cosign container image", "atomic container"),
            "type",
        ),
        (
            payload.replace("\"identity\"", "\"more\":1,\"identity\""),
            "payload",
        ),
        ("{}".to_owned(), "payload"),
        ("nothing".to_owned(), "payload"),
    ] {
        let found = attached(vec![attach(&pair, &text)]);
        assert_eq!(refusal(&policy, &found), wanted, "{text}");
    }
    let statement = |kind: &str, hex: &str| {
        format!(
            r#"{{"_type":"x","subject":[{{"digest":{{"sha256":"{hex}"}}}}],"predicateType":"{kind}"}}"#
        )
    };
    let in_toto = "application/vnd.in-toto+json";
    let sign = "https://sigstore.dev/cosign/sign/v1";
    let hex = &DIGEST["sha256:".len()..];
    let found =
        |payload_type, kind, hex| bundles(vec![bundle(&pair, payload_type, &statement(kind, hex))]);
    policy.verify(DIGEST, &found(in_toto, sign, hex)).unwrap();
    let sbom = "https://spdx.dev/Document";
    for (payload_type, kind, hex, wanted) in [
        (in_toto, sign, "00", "digest"),
        (in_toto, sbom, hex, "type"),
        ("text/plain", sign, hex, "type"),
    ] {
        let refused = refusal(&policy, &found(payload_type, kind, hex));
        assert_eq!(refused, wanted, "{payload_type} {kind}");
    }
}

#[test]
fn verify_finds_a_valid_signature_or_reports_the_best_invalid_one() {
    let (pair, other) = (Cosign::new(), Cosign::new());
    let policy = Policy::cosign(image(), vec![public(&pair)]);
    let right = attach(&pair, &Cosign::payload(DIGEST, "a.io/b"));
    let foreign = attach(&other, &Cosign::payload(DIGEST, "a.io/b"));
    let old = attach(&pair, &Cosign::payload("sha256:00", "a.io/b"));
    let found = attached(vec![foreign.clone(), old.clone(), right]);
    assert_eq!(policy.verify(DIGEST, &found).unwrap().by.len(), 1);
    assert_eq!(refusal(&policy, &attached(vec![old, foreign])), "digest");
}

#[test]
fn policy_json_compares_names() {
    let pair = Cosign::new();
    let pem = public(&pair).to_pem();
    let policy = |identity: &str| {
        let text =
            format!(r#"{{"default":[{{"type":"sigstoreSigned","keyPath":"/key"{identity}}}]}}"#);
        let files = KeySources {
            read: &|_| Ok(pem.clone().into_bytes()),
            keyrings: None,
        };
        Policy::containers(image(), text.as_bytes(), &files).unwrap()
    };
    let signed = |name: &str| attached(vec![attach(&pair, &Cosign::payload(DIGEST, name))]);
    let by_default = policy("");
    by_default
        .verify(DIGEST, &signed("quay.io/ns/cat:v1"))
        .unwrap();
    assert_eq!(refusal(&by_default, &signed("quay.io/ns/cat")), "identity");
    let repository = policy(r#","signedIdentity":{"type":"matchRepository"}"#);
    repository
        .verify(DIGEST, &signed("quay.io/ns/cat"))
        .unwrap();
    assert_eq!(refusal(&repository, &signed("quay.io/ns/dog")), "identity");
    assert_eq!(
        refusal(&repository, &bundles(vec![BUNDLE.into()])),
        "unnamed"
    );
}

#[test]
fn hash_differs_between_policies() {
    let (a, b) = (public(&Cosign::new()), public(&Cosign::new()));
    let policy = |image: &str, keys: &[&PublicKey]| {
        let keys = keys.iter().map(|key| (*key).clone()).collect();
        Policy::cosign(ImageReference::as_written(image), keys)
    };
    let first = policy("a.io/b:v1", &[&a, &b]);
    assert_eq!(first.hash(), policy("a.io/b:v1", &[&b, &a]).hash());
    let also_of_manifests = Policy {
        accepts_manifests: true,
        ..policy("a.io/b:v1", &[&a, &b])
    };
    for other in [
        also_of_manifests,
        policy("a.io/b:v1", &[&a]),
        policy("a.io/b:v2", &[&a, &b]),
        policy("a.io/b:v1", &[]),
    ] {
        assert_ne!(first.hash(), other.hash());
    }
}
