//! Whether an image may be published, before anything of it is.

use image::{Digest, Images};
use layout::{SourceRef, Verified};
use policy::{Attached, Found, Policy, Rejection};

use crate::{Catalog, Mirror, PollError};

/// Verifies the signatures of an image, if the catalog has a policy. What is known to be verified under the same policy is
/// not asked for again: `known` is what was published of it.
pub(crate) async fn approve(
    mirror: &Mirror,
    catalog: &Catalog,
    digest: &Digest,
    known: Option<&SourceRef>,
) -> Result<Option<Verified>, PollError> {
    let Some(policy) = &catalog.policy else {
        return Ok(None);
    };
    let known = known.filter(|known| known.digest == digest.as_str());
    let known = known.and_then(|known| known.verified.as_ref());
    if let Some(verified) = known.filter(|verified| verified.policy == policy.hash()) {
        return Ok(Some(verified.clone()));
    }
    let verified = match judge(mirror, catalog, policy, digest).await {
        Err(PollError::Rejected(rejection)) if policy.takes_manifests() && !rejection.is_final() => {
            judge_manifest(mirror, catalog, policy, digest, rejection).await?
        }
        judged => judged?,
    };
    for by in &verified.by {
        let (method, key) = (&by.method, &by.key);
        tracing::info!(catalog = %catalog.name, %digest, method, key, "verified");
    }
    Ok(Some(verified))
}

async fn judge(mirror: &Mirror, catalog: &Catalog, policy: &Policy, digest: &Digest) -> Result<Verified, PollError> {
    let found = find(&mirror.images, catalog, policy, digest).await;
    Ok(policy.judge(digest.as_str(), &found.map_err(PollError::Signatures)?)?)
}

/// Of an index the manifest that will be pulled is judged, which the index names by its digest. Told is what was wrong with
/// the signatures of the index, if it had any.
async fn judge_manifest(
    mirror: &Mirror,
    catalog: &Catalog,
    policy: &Policy,
    index: &Digest,
    rejection: Rejection,
) -> Result<Verified, PollError> {
    let manifest = mirror.images.of_platform(&catalog.source, index).await;
    let Some(manifest) = manifest.map_err(PollError::Signatures)? else {
        return Err(rejection.into());
    };
    match judge(mirror, catalog, policy, &manifest).await {
        Err(PollError::Rejected(_)) if matches!(rejection, Rejection::Flawed { .. }) => Err(rejection.into()),
        judged => judged,
    }
}

async fn find(images: &Images, catalog: &Catalog, policy: &Policy, digest: &Digest) -> Result<Found, image::Error> {
    let mut found = Found::default();
    if policy.wants().cosign {
        let signatures = images.signatures(&catalog.source, digest).await?;
        found.attached = signatures.attached.into_iter().map(attached).collect();
        found.bundles = signatures.bundles.into_iter().map(Into::into).collect();
    }
    if let (true, Some(lookaside)) = (policy.wants().simple, &catalog.lookaside) {
        let signatures = images.simple_signatures(&catalog.source, digest, lookaside).await?;
        found.simple = signatures.into_iter().map(Into::into).collect();
    }
    Ok(found)
}

fn attached(found: image::Attached) -> Attached {
    Attached {
        payload: found.payload.into(),
        signature: found.signature,
    }
}
