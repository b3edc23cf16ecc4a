//! Verifies the signatures of an image before any of it is pulled.

use model::{SourceRef, Verified};
use source::{Digest, Sources};
use trust::policy::{ImageSignatures, Policy, VerifyError};

use super::fetched::PulledRevision;
use crate::{PollError, PulledSource};

/// Verifies the signatures of an image, if it has a policy. Signatures that were verified under the
/// same policy are not fetched again: `known` is the source as it was published.
pub(super) async fn verify(
    images: &Sources,
    revision: &PulledRevision<'_>,
    known: Option<&SourceRef>,
) -> Result<Option<Verified>, PollError> {
    let PulledRevision { pulled, digest } = revision;
    let Some(policy) = &pulled.policy else {
        return Ok(None);
    };
    if let Some(known) = known
        && known.revision == digest.as_str()
        && let Some(verified) = &known.verified
        && verified.policy == policy.hash()
    {
        return Ok(Some(verified.clone()));
    }
    let verified = match verify_digest(images, pulled, policy, digest).await {
        // `policy.json` asks for a signature of the manifest that is pulled, which the index need
        // not have. A signature of the index is tried first, since it covers every platform.
        Err(PollError::Rejected(rejection))
            if policy.accepts_manifests && !matches!(rejection, VerifyError::Rejected(_)) =>
        {
            verify_manifest(images, pulled, policy, digest, rejection).await?
        }
        verified => verified?,
    };
    for by in &verified.by {
        tracing::info!(
            %digest,
            method = by.method,
            key = by.key,
            "verified the image's signature"
        );
    }
    Ok(Some(verified))
}

async fn verify_digest(
    images: &Sources,
    pulled: &PulledSource,
    policy: &Policy,
    digest: &Digest,
) -> Result<Verified, PollError> {
    let mut found = ImageSignatures::default();
    if policy.needs_cosign() {
        found = images
            .signatures(&pulled.source, digest)
            .await
            .map_err(PollError::Signatures)?;
    }
    if policy.needs_simple()
        && let Some(lookaside) = &pulled.lookaside
    {
        found.simple = images
            .simple_signatures(&pulled.source, digest, lookaside)
            .await
            .map_err(PollError::Signatures)?;
    }
    Ok(policy.verify(digest.as_str(), &found)?)
}

/// Verifies the manifest that will be pulled, which the index names by its digest. The error is
/// about the signatures of the index, if it has any.
async fn verify_manifest(
    images: &Sources,
    pulled: &PulledSource,
    policy: &Policy,
    index: &Digest,
    rejection: VerifyError,
) -> Result<Verified, PollError> {
    let found = images.of_platform(&pulled.source, index).await;
    let Some(manifest) = found.map_err(PollError::Signatures)? else {
        return Err(rejection.into());
    };
    match verify_digest(images, pulled, policy, &manifest).await {
        Err(PollError::Rejected(_)) if matches!(rejection, VerifyError::Invalid { .. }) => {
            Err(rejection.into())
        }
        verified => verified,
    }
}
