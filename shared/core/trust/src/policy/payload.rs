use std::{fmt, marker::PhantomData};

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::policy::{IdentityRule, SignatureError, Subject};

/// Value of `critical.type` in payloads of cosign (cosign, specs/SIGNATURE_SPEC.md).
pub(crate) const COSIGN: &str = "cosign container image signature";
/// Value of `critical.type` in payloads of simple signing (containers-signature(5)).
pub(crate) const SIMPLE: &str = "atomic container signature";

/// Simple signing payload (containers-signature(5)), in OpenPGP messages and in attachments of
/// cosign.
#[derive(Debug, Deserialize)]
struct Payload {
    #[serde(deserialize_with = "object")]
    critical: Critical,
}

/// Fields that a verifier must understand in full.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Critical {
    #[serde(rename = "type")]
    kind: String,
    #[serde(deserialize_with = "object")]
    image: SignedImage,
    #[serde(deserialize_with = "object")]
    identity: SignedIdentity,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SignedImage {
    docker_manifest_digest: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SignedIdentity {
    docker_reference: String,
}

/// Verifies that a payload is about this image. Call it only after its signature was verified.
/// Without an identity rule the name is ignored.
pub(crate) fn check(
    payload: &[u8],
    kind: &'static str,
    subject: Subject<'_>,
    identity: Option<&IdentityRule>,
) -> Result<(), SignatureError> {
    let Payload { critical } = read(payload).map_err(SignatureError::Payload)?;
    if critical.kind != kind {
        return Err(SignatureError::Type(critical.kind));
    }
    if critical.image.docker_manifest_digest != subject.digest {
        return Err(SignatureError::Digest(
            critical.image.docker_manifest_digest,
        ));
    }
    let claimed = critical.identity.docker_reference;
    match identity {
        Some(identity) if !identity.accepts(subject.image, &claimed) => {
            Err(SignatureError::Identity(claimed))
        }
        _ => Ok(()),
    }
}

/// Value that is written as a JSON object. A derived deserialiser also accepts an array of the
/// values, which other programs refuse.
#[derive(Debug)]
pub(crate) struct JsonObject<T>(pub(crate) T);

/// Reads a JSON object and requires that all of the input is valid JSON (RFC 8259).
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    // The library does not check what it skips, such as texts that are not UTF-8. Another program
    // that reads all of it would see something else than what was verified.
    serde_json::from_slice::<Value>(bytes)?;
    serde_json::from_slice(bytes).map(|JsonObject(value)| value)
}

/// Reads the object in a field.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    JsonObject::deserialize(deserializer).map(|JsonObject(value)| value)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData))
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = JsonObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, members: M) -> Result<Self::Value, M::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(JsonObject)
    }
}
