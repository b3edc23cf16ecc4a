use base64::{Engine, engine::general_purpose::STANDARD};
use layout::SignedBy;
use seal::PublicKey;

use crate::{Attached, Identity, ImageName, payload, requirement::Flaw};

/// Who signed, if one of the keys has (cosign, specs/SIGNATURE_SPEC.md): the annotation is a signature of the payload.
pub(crate) fn check(
    attached: &Attached,
    keys: &[PublicKey],
    subject: (&ImageName, &str),
    identity: Option<&Identity>,
) -> Result<SignedBy, Flaw> {
    let signature = STANDARD.decode(&attached.signature).map_err(|_| Flaw::Base64)?;
    let key = keys
        .iter()
        .find(|key| key.verify(&attached.payload, &signature).is_ok())
        .ok_or(Flaw::Key)?;
    payload::check(&attached.payload, payload::COSIGN, subject, identity)?;
    Ok(SignedBy {
        method: "cosign".to_owned(),
        key: key.id().to_string(),
    })
}
