//! Verifies what cosign attaches to an image: payloads with a signature, and Sigstore bundles.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::SignedBy;
use serde::Deserialize;

use crate::policy::payload::{self, JsonObject, read};
use crate::policy::{AttachedSignature, IdentityRule, SignatureError, Subject};
use crate::{PublicKey, pae};

/// Predicate type of the statement with which cosign 3 signs an image (cosign, `pkg/types`).
const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";
/// DSSE payload type of in-toto statements.
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// Sigstore bundle (sigstore/protobuf-specs, `sigstore_bundle.proto`). Its transparency log entries
/// are not evaluated.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    dsse_envelope: Option<JsonObject<Envelope>>,
}

/// Envelope as DSSE v1.0.2 defines it (envelope.md).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<JsonObject<EnvelopeSignature>>,
}

#[derive(Debug, Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

/// Statement of the in-toto Attestation Framework v1.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    predicate_type: String,
    subject: Vec<JsonObject<StatementSubject>>,
}

#[derive(Debug, Deserialize)]
struct StatementSubject {
    digest: BTreeMap<String, String>,
}

/// Verifies a payload that cosign attached (cosign, specs/SIGNATURE_SPEC.md) and returns its
/// signer.
pub(crate) fn check_payload(
    attached: &AttachedSignature,
    keys: &[PublicKey],
    subject: Subject<'_>,
    identity: Option<&IdentityRule>,
) -> Result<SignedBy, SignatureError> {
    let signature = STANDARD
        .decode(&attached.signature)
        .map_err(|_| SignatureError::Base64)?;
    let key = keys
        .iter()
        .find(|key| key.verifies(&attached.payload, &signature))
        .ok_or(SignatureError::Key)?;
    payload::check(&attached.payload, payload::COSIGN, subject, identity)?;
    Ok(SignedBy {
        method: "cosign".to_owned(),
        key: key.id().to_string(),
    })
}

/// Verifies a Sigstore bundle and returns its signer. A bundle holds no image name, so no identity
/// rule applies.
pub(crate) fn check_bundle(
    bytes: &[u8],
    keys: &[PublicKey],
    digest: &str,
) -> Result<SignedBy, SignatureError> {
    let bundle: Bundle = read(bytes).map_err(SignatureError::Payload)?;
    let JsonObject(envelope) = bundle.dsse_envelope.ok_or(SignatureError::Envelope)?;
    let payload = STANDARD
        .decode(&envelope.payload)
        .map_err(|_| SignatureError::Base64)?;
    let message = pae(&envelope.payload_type, &payload);
    let mut signatures = Vec::new();
    for JsonObject(signature) in &envelope.signatures {
        signatures.extend(STANDARD.decode(&signature.sig));
    }
    let key = keys
        .iter()
        .find(|key| signatures.iter().any(|sig| key.verifies(&message, sig)))
        .ok_or(SignatureError::Key)?;
    if envelope.payload_type != IN_TOTO {
        return Err(SignatureError::Type(envelope.payload_type));
    }
    check_statement(&payload, digest)?;
    Ok(SignedBy {
        method: "sigstore-bundle".to_owned(),
        key: key.id().to_string(),
    })
}

/// Verifies that a statement signs the image with this digest.
fn check_statement(payload: &[u8], digest: &str) -> Result<(), SignatureError> {
    let statement: Statement = read(payload).map_err(SignatureError::Payload)?;
    // The same keys also sign other statements about an image, such as its SBOM. Those do not
    // approve the image.
    if statement.predicate_type != COSIGN_SIGN {
        return Err(SignatureError::Type(statement.predicate_type));
    }
    let mut digests = Vec::new();
    for JsonObject(subject) in &statement.subject {
        for (algorithm, hex) in &subject.digest {
            digests.push(format!("{algorithm}:{hex}"));
        }
    }
    if digests.iter().any(|found| found == digest) {
        return Ok(());
    }
    let first = digests.into_iter().next();
    Err(SignatureError::Digest(first.unwrap_or_default()))
}
