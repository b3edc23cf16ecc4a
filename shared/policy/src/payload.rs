use serde::Deserialize;
use serde_json::Value;

use crate::{
    Identity, ImageName,
    object::{object, read},
    requirement::Flaw,
};

/// `critical.type` of what cosign signs (cosign, specs/SIGNATURE_SPEC.md).
pub(crate) const COSIGN: &str = "cosign container image signature";
/// `critical.type` of simple signing (containers-signature(5)).
pub(crate) const SIMPLE: &str = "atomic container signature";

/// A simple signing payload (containers-signature(5)): both OpenPGP messages and cosign's attachments carry it.
#[derive(Debug, Deserialize)]
struct Payload {
    #[serde(deserialize_with = "object")]
    critical: Critical,
    /// Whatever the signer wanted to say besides.
    #[serde(default)]
    #[expect(dead_code, reason = "named so that the payload is a whole one")]
    optional: Option<Value>,
}

/// Everything in here has to be understood, as its name says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Critical {
    #[serde(rename = "type")]
    kind: String,
    #[serde(deserialize_with = "object")]
    image: Image,
    #[serde(deserialize_with = "object")]
    identity: Claim,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Image {
    docker_manifest_digest: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Claim {
    docker_reference: String,
}

/// Whether a payload whose signature is right speaks of this image. Without an identity its name does not matter.
pub(crate) fn check(
    payload: &[u8],
    kind: &'static str,
    (image, digest): (&ImageName, &str),
    identity: Option<&Identity>,
) -> Result<(), Flaw> {
    let Payload { critical, .. } = read(payload).map_err(Flaw::Payload)?;
    if critical.kind != kind {
        return Err(Flaw::Type(critical.kind));
    }
    if critical.image.docker_manifest_digest != digest {
        return Err(Flaw::Digest(critical.image.docker_manifest_digest));
    }
    let claimed = critical.identity.docker_reference;
    match identity {
        Some(identity) if !identity.fits(image, &claimed) => Err(Flaw::Identity(claimed)),
        _ => Ok(()),
    }
}
