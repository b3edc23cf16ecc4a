use base64::{Engine, engine::general_purpose::STANDARD};
use layout::SignedBy;
use seal::{PublicKey, pae};
use serde::Deserialize;

use crate::{
    object::{Object, read},
    requirement::Flaw,
};

/// What cosign 3 states of an image that it signs (cosign, `pkg/types`).
const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A Sigstore bundle (sigstore/protobuf-specs, `sigstore_bundle.proto`), as far as a key can verify it: what is in it of
/// transparency logs is not asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    dsse_envelope: Option<Object<Envelope>>,
}

/// DSSE v1.0.2, envelope.md.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Object<EnvelopeSignature>>,
}

#[derive(Debug, Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

/// in-toto Attestation Framework v1, "Statement".
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    predicate_type: String,
    subject: Vec<Object<Subject>>,
}

#[derive(Debug, Deserialize)]
struct Subject {
    digest: std::collections::BTreeMap<String, String>,
}

/// Who signed, if one of the keys has. A bundle names no image, so there is no identity to compare.
pub(crate) fn check(bytes: &[u8], keys: &[PublicKey], digest: &str) -> Result<SignedBy, Flaw> {
    let bundle: Bundle = read(bytes).map_err(Flaw::Payload)?;
    let Object(envelope) = bundle.dsse_envelope.ok_or(Flaw::Envelope)?;
    let payload = STANDARD.decode(&envelope.payload).map_err(|_| Flaw::Base64)?;
    let message = pae(&envelope.payload_type, &payload);
    let signatures = envelope
        .signatures
        .iter()
        .filter_map(|Object(signature)| STANDARD.decode(&signature.sig).ok());
    let signatures: Vec<_> = signatures.collect();
    let signed = |key: &&PublicKey| signatures.iter().any(|sig| key.verify(&message, sig).is_ok());
    let key = keys.iter().find(signed).ok_or(Flaw::Key)?;
    if envelope.payload_type != IN_TOTO {
        return Err(Flaw::Type(envelope.payload_type));
    }
    subject(&payload, digest)?;
    Ok(SignedBy {
        method: "sigstore-bundle".to_owned(),
        key: key.id().to_string(),
    })
}

/// Other statements of an image, such as its SBOM, are signed by the same keys and are no approval of it.
fn subject(payload: &[u8], digest: &str) -> Result<(), Flaw> {
    let statement: Statement = read(payload).map_err(Flaw::Payload)?;
    if statement.predicate_type != COSIGN_SIGN {
        return Err(Flaw::Type(statement.predicate_type));
    }
    let digests = statement.subject.iter().flat_map(|Object(subject)| &subject.digest);
    let mut digests = digests.map(|(algorithm, hex)| format!("{algorithm}:{hex}"));
    match digests.clone().any(|found| found == digest) {
        true => Ok(()),
        false => Err(Flaw::Digest(digests.next().unwrap_or_default())),
    }
}
