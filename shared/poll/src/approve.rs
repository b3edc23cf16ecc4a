//! Whether an image may be published, before anything of it is.

use image::{Digest, Images};
use layout::{SourceRef, Verified};
use policy::{Attached, Found, Policy};

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
    let found = find(&mirror.images, catalog, policy, digest).await;
    let verified = policy.judge(digest.as_str(), &found.map_err(PollError::Signatures)?)?;
    for by in &verified.by {
        let (method, key) = (&by.method, &by.key);
        tracing::info!(catalog = %catalog.name, %digest, method, key, "verified");
    }
    Ok(Some(verified))
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
