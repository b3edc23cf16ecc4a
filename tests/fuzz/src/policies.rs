use std::{io, path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use model::ImageReference;
use serde_json::Value;
use trust::policy::{
    AttachedSignature, ImageSignatures, KeySources, Keyring, OpenPgpError, Policy, PolicyError,
    SignedMessage,
};
use trust::{PublicKey, pae};

use crate::publisher;

/// Digest, payload, signature and bundle made by cosign; see `shared/core/trust`.
const DIGEST: &str = "sha256:5a57d71063c67896cf87e4824d3eb3ed5e6c474dae34fe47d62d2414968986c9";
pub(crate) const PAYLOAD: &[u8] =
    include_bytes!("../../../shared/core/trust/src/policy/fixtures/payload.json");
pub(crate) const SIGNATURE: &str =
    include_str!("../../../shared/core/trust/src/policy/fixtures/payload.sig");
pub(crate) const BUNDLE: &[u8] =
    include_bytes!("../../../shared/core/trust/src/policy/fixtures/bundle.json");
const KEY: &str = include_str!("../../../shared/core/trust/src/policy/fixtures/cosign.pub");

const COSIGN: &str = "cosign container image signature";
const SIMPLE: &str = "atomic container signature";
const IN_TOTO: &str = "application/vnd.in-toto+json";
const SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

/// Scopes that apply to `quay.io/ns/cat:v1`, in the order of containers-policy.json(5).
const SCOPES: [&str; 6] = [
    "quay.io/ns/cat:v1",
    "quay.io/ns/cat",
    "quay.io/ns",
    "quay.io",
    "*.io",
    "",
];

/// Policies, and payloads that another key could have signed.
pub(crate) const WRITTEN: [&str; 6] = [
    r#"{"default":[{"type":"insecureAcceptAnything"}]}"#,
    r#"{"default":[{"type":"reject"}],"transports":{"docker":{"quay.io/ns":[{"type":"insecureAcceptAnything"}],"*.io":[]}}}"#,
    r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPaths":["/key"],"signedIdentity":{"type":"exactRepository","dockerRepository":"quay.io/ns/cat"}}],
    "transports":{"docker":{"":[{"type":"sigstoreSigned","keyData":"AAAA","signedIdentity":{"type":"remapIdentity","prefix":"quay.io","signedPrefix":"a.io"}}]}}}"#,
    r#"{"default":[{"type":"sigstoreSigned","keyPath":"/key","fulcio":{},"rekorPublicKeyData":""}]}"#,
    r#"{"critical":{"type":"atomic container signature","image":{"docker-manifest-digest":"sha256:5a57d71063c67896cf87e4824d3eb3ed5e6c474dae34fe47d62d2414968986c9"},"identity":{"docker-reference":"quay.io/ns/cat:v1"}},"optional":{"creator":"skopeo"}}"#,
    r#"{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":{"sha256":"5a57d71063c67896cf87e4824d3eb3ed5e6c474dae34fe47d62d2414968986c9"}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}"#,
];

/// Reads bytes as a `policy.json`, as a signature and as a signed payload: only signed content is
/// accepted, with its own meaning, and a policy requires what it says.
///
/// # Panics
/// If one of these does not hold.
pub(crate) fn policy(input: &[u8]) {
    document(input);
    forgery(input);
    payload(input);
    publisher::check(input);
}

fn document(input: &[u8]) {
    match read(input) {
        // The author of the policy needs the place of the mistake.
        Err(PolicyError::Json(why)) => assert!(why.to_string().contains(" at line "), "{why}"),
        Err(why) => assert!(!why.to_string().is_empty()),
        Ok(policy) => {
            assert!(read(input).is_ok_and(|again| again == policy));
            let is_met = policy.verify(DIGEST, &ImageSignatures::default()).is_ok();
            let text = String::from_utf8_lossy(input);
            assert_eq!(is_met, asks_for_nothing(input), "{text}");
        }
    }
}

fn read(text: &[u8]) -> Result<Policy, PolicyError> {
    let files = KeySources {
        read: &|path| match path == Path::new("/key") {
            true => Ok(KEY.into()),
            false => Err(io::ErrorKind::NotFound.into()),
        },
        keyrings: Some(|_| Ok(Arc::new(Believing))),
    };
    Policy::containers(image(), text, &files)
}

/// Returns true if a second implementation accepts an image without signatures.
fn asks_for_nothing(text: &[u8]) -> bool {
    let document: Value = json(text);
    let docker = &document["transports"]["docker"];
    let chosen = SCOPES.iter().find_map(|scope| docker.get(scope));
    let entries = chosen.unwrap_or(&document["default"]).as_array();
    entries.is_some_and(|entries| {
        entries
            .iter()
            .all(|entry| entry["type"] == "insecureAcceptAnything")
    })
}

/// Checks that only the one payload and the one statement that the key has signed are accepted.
fn forgery(input: &[u8]) {
    let keys = PublicKey::from_pem(KEY.as_bytes()).expect("a key");
    let policy = Policy::cosign(image(), keys);
    let takes = |found: &ImageSignatures| policy.verify(DIGEST, found).is_ok();
    assert!(!takes(&attached(input, SIGNATURE)) || input == PAYLOAD);
    // An ECDSA signature can be written in two ways, so this one may be valid.
    takes(&attached(PAYLOAD, &String::from_utf8_lossy(input)));
    if takes(&bundle(input)) {
        let (given, real) = (&json(input)["dsseEnvelope"], &json(BUNDLE)["dsseEnvelope"]);
        assert_eq!(
            (&given["payload"], &given["payloadType"]),
            (&real["payload"], &real["payloadType"])
        );
    }
    assert!(policy.verify("sha256:00", &bundle(input)).is_err());
}

/// Checks that a payload with a valid signature counts only if it is about this image.
fn payload(input: &[u8]) {
    let policy = Policy::cosign(image(), vec![publisher::public()]);
    let takes = |found: &ImageSignatures| policy.verify(DIGEST, found).is_ok();
    if takes(&attached(input, &publisher::sign(input))) {
        assert_eq!(claims(input)[..2], [COSIGN, DIGEST]);
    }
    if takes(&statement(input)) {
        assert!(states(input), "{}", String::from_utf8_lossy(input));
    }
    let simple = ImageSignatures {
        simple: vec![input.to_vec()],
        ..ImageSignatures::default()
    };
    let policy = read(br#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/key"}]}"#);
    if policy.expect("a policy").verify(DIGEST, &simple).is_ok() {
        assert_eq!(claims(input), [SIMPLE, DIGEST, "quay.io/ns/cat:v1"]);
    }
}

/// Reads a simple signing payload with a second implementation.
fn claims(payload: &[u8]) -> [String; 3] {
    let critical = &json(payload)["critical"];
    let claims = [
        &critical["type"],
        &critical["image"]["docker-manifest-digest"],
        &critical["identity"]["docker-reference"],
    ];
    claims.map(|claim| claim.as_str().unwrap_or_default().to_owned())
}

/// Reads an in-toto statement with a second implementation.
fn states(payload: &[u8]) -> bool {
    let statement = json(payload);
    let (_, hex) = DIGEST.split_once(':').expect("a digest");
    let subjects = statement["subject"].as_array().expect("subjects");
    statement["predicateType"] == SIGN
        && subjects
            .iter()
            .any(|subject| subject["digest"]["sha256"] == hex)
}

fn attached(payload: &[u8], signature: &str) -> ImageSignatures {
    let attached = AttachedSignature {
        payload: payload.to_vec(),
        signature: signature.to_owned(),
    };
    ImageSignatures {
        attached: vec![attached],
        ..ImageSignatures::default()
    }
}

fn bundle(bytes: &[u8]) -> ImageSignatures {
    ImageSignatures {
        bundles: vec![bytes.to_vec()],
        ..ImageSignatures::default()
    }
}

fn statement(payload: &[u8]) -> ImageSignatures {
    let sig = publisher::sign(&pae(IN_TOTO, payload));
    let envelope = serde_json::json!({
        "payload": STANDARD.encode(payload), "payloadType": IN_TOTO, "signatures": [{"sig": sig}],
    });
    bundle(
        serde_json::json!({"dsseEnvelope": envelope})
            .to_string()
            .as_bytes(),
    )
}

fn image() -> ImageReference {
    ImageReference::new("quay.io/ns/cat:v1")
}

/// Returns accepted input as JSON.
fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).expect("what was understood is JSON")
}

/// Accepts every message as signed, so that its payload is evaluated.
#[derive(Debug)]
struct Believing;

impl Keyring for Believing {
    fn open(&self, message: &[u8]) -> Result<SignedMessage, OpenPgpError> {
        Ok(SignedMessage {
            payload: message.to_vec(),
            key: "anybody's".to_owned(),
        })
    }

    fn fingerprints(&self) -> Vec<String> {
        vec!["anybody's".to_owned()]
    }
}
