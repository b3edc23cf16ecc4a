use std::{io, path::Path, sync::Arc};

use ::policy::{Attached, Files, Found, ImageName, Keyring, Keyrings, OpenPgpError, Policy, PolicyError, Signed};
use base64::{Engine, engine::general_purpose::STANDARD};
use seal::{PublicKey, pae};
use serde_json::Value;

use crate::publisher;

/// What cosign made: `shared/policy` says how.
const DIGEST: &str = "sha256:5a57d71063c67896cf87e4824d3eb3ed5e6c474dae34fe47d62d2414968986c9";
pub(crate) const PAYLOAD: &[u8] = include_bytes!("../../../shared/policy/src/judge/fixtures/payload.json");
pub(crate) const SIGNATURE: &str = include_str!("../../../shared/policy/src/judge/fixtures/payload.sig");
pub(crate) const BUNDLE: &[u8] = include_bytes!("../../../shared/policy/src/judge/fixtures/bundle.json");
const KEY: &str = include_str!("../../../shared/policy/src/judge/fixtures/cosign.pub");

const COSIGN: &str = "cosign container image signature";
const SIMPLE: &str = "atomic container signature";
const IN_TOTO: &str = "application/vnd.in-toto+json";
const SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

/// Those that count for `quay.io/ns/cat:v1`, in the order of containers-policy.json(5).
const SCOPES: [&str; 6] = [
    "quay.io/ns/cat:v1",
    "quay.io/ns/cat",
    "quay.io/ns",
    "quay.io",
    "*.io",
    "",
];

/// Policies, and what another key could have signed.
pub(crate) const WRITTEN: [&str; 6] = [
    r#"{"default":[{"type":"insecureAcceptAnything"}]}"#,
    r#"{"default":[{"type":"reject"}],"transports":{"docker":{"quay.io/ns":[{"type":"insecureAcceptAnything"}],"*.io":[]}}}"#,
    r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPaths":["/key"],"signedIdentity":{"type":"exactRepository","dockerRepository":"quay.io/ns/cat"}}],
    "transports":{"docker":{"":[{"type":"sigstoreSigned","keyData":"AAAA","signedIdentity":{"type":"remapIdentity","prefix":"quay.io","signedPrefix":"a.io"}}]}}}"#,
    r#"{"default":[{"type":"sigstoreSigned","keyPath":"/key","fulcio":{},"rekorPublicKeyData":""}]}"#,
    r#"{"critical":{"type":"atomic container signature","image":{"docker-manifest-digest":"sha256:5a57d71063c67896cf87e4824d3eb3ed5e6c474dae34fe47d62d2414968986c9"},"identity":{"docker-reference":"quay.io/ns/cat:v1"}},"optional":{"creator":"skopeo"}}"#,
    r#"{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":{"sha256":"5a57d71063c67896cf87e4824d3eb3ed5e6c474dae34fe47d62d2414968986c9"}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}"#,
];

/// Bytes where a `policy.json`, a signature or what is signed should be: what was not signed is not taken, what is signed
/// is taken as it is meant, and a policy asks for what it says.
///
/// # Panics
/// If it is otherwise.
pub fn policy(input: &[u8]) {
    document(input);
    forgery(input);
    payload(input);
    publisher::judge(input);
}

fn document(input: &[u8]) {
    match read(input) {
        // Whoever wrote it has to find the place.
        Err(PolicyError::Json(why)) => assert!(why.to_string().contains(" at line "), "{why}"),
        Err(why) => assert!(!why.to_string().is_empty()),
        Ok(policy) => {
            assert!(read(input).is_ok_and(|again| again == policy));
            let is_met = policy.judge(DIGEST, &Found::default()).is_ok();
            let text = String::from_utf8_lossy(input);
            assert_eq!(is_met, asks_for_nothing(input), "{text}");
        }
    }
}

fn read(text: &[u8]) -> Result<Policy, PolicyError> {
    let files = Files {
        read: &|path| match path == Path::new("/key") {
            true => Ok(KEY.into()),
            false => Err(io::ErrorKind::NotFound.into()),
        },
        keyrings: Some(&Believing),
    };
    Policy::containers(image(), text, &files)
}

/// A second reading: whether an image without any signature will do.
fn asks_for_nothing(text: &[u8]) -> bool {
    let document: Value = json(text);
    let docker = &document["transports"]["docker"];
    let chosen = SCOPES.iter().find_map(|scope| docker.get(scope));
    let entries = chosen.unwrap_or(&document["default"]).as_array();
    entries.is_some_and(|entries| entries.iter().all(|entry| entry["type"] == "insecureAcceptAnything"))
}

/// The key has signed one payload and one statement, and nothing else is taken for signed by it.
fn forgery(input: &[u8]) {
    let keys = PublicKey::from_pem(KEY.as_bytes()).expect("a key");
    let policy = Policy::cosign(image(), keys);
    let takes = |found: &Found| policy.judge(DIGEST, found).is_ok();
    assert!(!takes(&attached(input, SIGNATURE)) || input == PAYLOAD);
    // An ECDSA signature can be written in two ways, so this one may be right.
    takes(&attached(PAYLOAD, &String::from_utf8_lossy(input)));
    if takes(&bundle(input)) {
        let (given, real) = (&json(input)["dsseEnvelope"], &json(BUNDLE)["dsseEnvelope"]);
        assert_eq!(
            (&given["payload"], &given["payloadType"]),
            (&real["payload"], &real["payloadType"])
        );
    }
    assert!(policy.judge("sha256:00", &bundle(input)).is_err());
}

/// Signed by the right key, a payload counts if it is about this image and nothing else.
fn payload(input: &[u8]) {
    let policy = Policy::cosign(image(), vec![publisher::public()]);
    let takes = |found: &Found| policy.judge(DIGEST, found).is_ok();
    if takes(&attached(input, &publisher::sign(input))) {
        assert_eq!(claims(input)[..2], [COSIGN, DIGEST]);
    }
    if takes(&statement(input)) {
        assert!(states(input), "{}", String::from_utf8_lossy(input));
    }
    let simple = Found {
        simple: vec![input.to_vec()],
        ..Found::default()
    };
    let policy = read(br#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/key"}]}"#);
    if policy.expect("a policy").judge(DIGEST, &simple).is_ok() {
        assert_eq!(claims(input), [SIMPLE, DIGEST, "quay.io/ns/cat:v1"]);
    }
}

/// A second reading of a simple signing payload.
fn claims(payload: &[u8]) -> [String; 3] {
    let critical = &json(payload)["critical"];
    let claims = [
        &critical["type"],
        &critical["image"]["docker-manifest-digest"],
        &critical["identity"]["docker-reference"],
    ];
    claims.map(|claim| claim.as_str().unwrap_or_default().to_owned())
}

/// A second reading of an in-toto statement.
fn states(payload: &[u8]) -> bool {
    let statement = json(payload);
    let (_, hex) = DIGEST.split_once(':').expect("a digest");
    let subjects = statement["subject"].as_array().expect("subjects");
    statement["predicateType"] == SIGN && subjects.iter().any(|subject| subject["digest"]["sha256"] == hex)
}

fn attached(payload: &[u8], signature: &str) -> Found {
    let attached = Attached {
        payload: payload.to_vec(),
        signature: signature.to_owned(),
    };
    Found {
        attached: vec![attached],
        ..Found::default()
    }
}

fn bundle(bytes: &[u8]) -> Found {
    Found {
        bundles: vec![bytes.to_vec()],
        ..Found::default()
    }
}

fn statement(payload: &[u8]) -> Found {
    let sig = publisher::sign(&pae(IN_TOTO, payload));
    let envelope = serde_json::json!({
        "payload": STANDARD.encode(payload), "payloadType": IN_TOTO, "signatures": [{"sig": sig}],
    });
    bundle(serde_json::json!({"dsseEnvelope": envelope}).to_string().as_bytes())
}

fn image() -> ImageName {
    ImageName {
        repository: "quay.io/ns/cat".to_owned(),
        tag: Some("v1".to_owned()),
        digest: None,
    }
}

/// What was accepted is JSON.
fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).expect("what was understood is JSON")
}

/// Takes every message for signed, so that what is in it is judged.
#[derive(Debug)]
struct Believing;

impl Keyrings for Believing {
    fn read(&self, _: &[Vec<u8>]) -> Result<Arc<dyn Keyring>, OpenPgpError> {
        Ok(Arc::new(Self))
    }
}

impl Keyring for Believing {
    fn open(&self, message: &[u8]) -> Result<Signed, OpenPgpError> {
        Ok(Signed {
            payload: message.to_vec(),
            key: "anybody's".to_owned(),
        })
    }

    fn fingerprints(&self) -> Vec<String> {
        vec!["anybody's".to_owned()]
    }
}
