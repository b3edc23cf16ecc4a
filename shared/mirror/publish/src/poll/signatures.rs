//! Verifies the signatures of an image before any of it is pulled.

use model::{SourceRef, Verified};
use source::Digest;
use trust::policy::{ImageSignatures, Policy, VerifyError};

use super::once::Poll;
use crate::{Catalog, Mirror, PollError, Transaction};

/// Returns the source at that digest, with its signatures verified if the catalog has a policy. A
/// forced poll verifies again.
pub(crate) async fn verified_source(
    poll: &Poll<'_>,
    transaction: &Transaction,
    digest: &Digest,
) -> Result<SourceRef, PollError> {
    let base = transaction.base().filter(|_| !poll.options.force);
    let known = base.map(|base| &base.source);
    let inputs = poll.inputs.as_ref();
    if let Some(inputs) = inputs
        // The revision covers the policies.
        && known.is_none_or(|known| known.revision != digest.as_str())
    {
        for (place, catalog, digest) in inputs.pulled() {
            let verified = verify_source(poll.mirror, catalog, digest, None).await;
            verified.map_err(|error| error.at(place))?;
        }
    }
    Ok(SourceRef {
        reference: poll.catalog.source.to_string(),
        revision: digest.to_string(),
        verified: verify_source(poll.mirror, poll.catalog, digest, known).await?,
        inputs: inputs.map(|inputs| inputs.published()).unwrap_or_default(),
    })
}

/// Verifies the signatures of an image, if the catalog has a policy. Signatures that were verified
/// under the same policy are not fetched again: `known` is the source as it was published.
async fn verify_source(
    mirror: &Mirror,
    catalog: &Catalog,
    digest: &Digest,
    known: Option<&SourceRef>,
) -> Result<Option<Verified>, PollError> {
    let Some(policy) = &catalog.policy else {
        return Ok(None);
    };
    let known = known.filter(|known| known.revision == digest.as_str());
    let known = known.and_then(|known| known.verified.as_ref());
    if let Some(verified) = known.filter(|verified| verified.policy == policy.hash()) {
        return Ok(Some(verified.clone()));
    }
    let verified = match verify(mirror, catalog, policy, digest).await {
        // `policy.json` asks for a signature of the manifest that is pulled, which the index need
        // not have. A signature of the index is tried first, since it covers every platform.
        Err(PollError::Rejected(rejection))
            if policy.accepts_manifests && !matches!(rejection, VerifyError::Rejected(_)) =>
        {
            verify_manifest(mirror, catalog, policy, digest, rejection).await?
        }
        verified => verified?,
    };
    for by in &verified.by {
        let (method, key) = (&by.method, &by.key);
        tracing::info!(catalog = %catalog.name, %digest, method, key, "verified the image's signature");
    }
    Ok(Some(verified))
}

async fn verify(
    mirror: &Mirror,
    catalog: &Catalog,
    policy: &Policy,
    digest: &Digest,
) -> Result<Verified, PollError> {
    let mut found = ImageSignatures::default();
    // A composition is no image, and has no signatures of its own.
    if let Some(source) = catalog.source.pulled() {
        let images = mirror.images(catalog);
        if policy.needs_cosign() {
            let signatures = images.signatures(source, digest).await;
            found = signatures.map_err(PollError::Signatures)?;
        }
        if let (true, Some(lookaside)) = (policy.needs_simple(), &catalog.lookaside) {
            let signatures = images.simple_signatures(source, digest, lookaside).await;
            found.simple = signatures.map_err(PollError::Signatures)?;
        }
    }
    Ok(policy.verify(digest.as_str(), &found)?)
}

/// Verifies the manifest that will be pulled, which the index names by its digest. The error is
/// about the signatures of the index, if it has any.
async fn verify_manifest(
    mirror: &Mirror,
    catalog: &Catalog,
    policy: &Policy,
    index: &Digest,
    rejection: VerifyError,
) -> Result<Verified, PollError> {
    let Some(source) = catalog.source.pulled() else {
        return Err(rejection.into());
    };
    let manifest = mirror.images(catalog).of_platform(source, index).await;
    let Some(manifest) = manifest.map_err(PollError::Signatures)? else {
        return Err(rejection.into());
    };
    match verify(mirror, catalog, policy, &manifest).await {
        Err(PollError::Rejected(_)) if matches!(rejection, VerifyError::Invalid { .. }) => {
            Err(rejection.into())
        }
        verified => verified,
    }
}
