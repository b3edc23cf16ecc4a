//! The choice between a registry and its mirrors.

use std::time::Duration;

use model::text::chain;
use oci::Digest;
use oci_client::Reference;

use crate::blob_source::BlobSource;
use crate::registry::Session;
use crate::stream::within;
use crate::{Error, ServerFault, Sources};

/// Maximum time for one question to a mirror of a registry, with its retries. The next mirror or the registry is asked after it.
const MIRROR_TIME: Duration = Duration::from_secs(20);

impl Sources {
    /// Returns the digest of a tag, as the first mirror has it that answers, else the registry itself.
    pub(crate) async fn resolve_tag(&self, reference: &Reference) -> Result<Digest, Error> {
        // As podman and docker complete a reference without tag.
        let tag = reference.tag().unwrap_or("latest");
        let (session, digest) = self.first_place(reference, tag).await?;
        match digest {
            Some(digest) => Ok(digest),
            None => session.resolve(tag).await,
        }
    }

    /// Returns a session with the first mirror that has a tag or digest, else with the registry itself, which is not asked here.
    pub(crate) async fn session_with(&self, reference: &Reference, version: &str) -> Result<Session, Error> {
        let (session, _) = self.first_place(reference, version).await?;
        Ok(session)
    }

    /// Returns the place of an image in a registry or its mirrors.
    pub(crate) async fn registry_with(&self, reference: &Reference, digest: &Digest) -> Result<BlobSource, Error> {
        let session = Box::pin(self.session_with(reference, digest.as_str())).await?;
        Ok(BlobSource::Registry(session))
    }

    /// Returns a session with the first mirror that has a tag or digest, and its digest; else with the registry itself.
    async fn first_place(&self, reference: &Reference, version: &str) -> Result<(Session, Option<Digest>), Error> {
        let places = self.settings().rules.places(reference, version);
        let Some(places) = places else {
            return Err(self.session(reference)?.server.failed(ServerFault::Blocked));
        };
        let mut registry = self.session(&places.registry)?;
        for mirror in &places.mirrors {
            let asking = async {
                let session = self.session(mirror)?;
                let resolved = session.resolve(version).await;
                let digest = session.server.redacted(resolved)?;
                Ok((session, Some(digest)))
            };
            match within(MIRROR_TIME, asking).await {
                Ok(found) => return Ok(found),
                Err(error) => {
                    let failure = chain(&error);
                    tracing::debug!(failure, "a mirror of the registry failed");
                    registry.server.place.failed_mirrors.push(failure);
                }
            }
        }
        Ok((registry, None))
    }
}
