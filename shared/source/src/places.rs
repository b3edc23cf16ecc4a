//! The choice between a registry and its mirrors.

use std::time::Duration;

use oci::Digest;
use oci_client::Reference;

use crate::blob_source::BlobSource;
use crate::error::Error;
use crate::failure::ServerFault;
use crate::registry::{Places, Session};
use crate::sources::Sources;
use crate::stream::within;

/// Maximum time for one question to a mirror of a registry, with its retries. The next mirror or the registry is asked after it.
const MIRROR_TIME: Duration = Duration::from_secs(20);

impl Sources {
    /// Returns the digest of a tag, as the first mirror has it that answers, else the registry itself.
    pub(crate) async fn resolve_tag(&self, reference: &Reference) -> Result<Digest, Error> {
        // As podman and docker complete a reference without tag.
        let tag = reference.tag().unwrap_or("latest");
        let places = self.places(reference, tag)?;
        let mut failed = Vec::new();
        for mirror in &places.mirrors {
            let session = self.session(mirror);
            match ask_mirror(&session, session.resolve(tag)).await {
                Ok(digest) => return Ok(digest),
                Err(failure) => failed.push(failure),
            }
        }
        self.session(&places.registry).after(failed).resolve(tag).await
    }

    /// Returns a session with the first mirror that has a tag or digest, else with the registry itself, which is not asked here.
    pub(crate) async fn session_with(&self, reference: &Reference, version: &str) -> Result<Session, Error> {
        let places = self.places(reference, version)?;
        let mut failed = Vec::new();
        for mirror in &places.mirrors {
            let session = self.session(mirror);
            match ask_mirror(&session, session.exists(version)).await {
                Ok(true) => return Ok(session),
                Ok(false) => failed.push(format!("{mirror} does not have {version}")),
                Err(failure) => failed.push(failure),
            }
        }
        Ok(self.session(&places.registry).after(failed))
    }

    /// Returns the place of an image in a registry or its mirrors.
    pub(crate) async fn registry_with(&self, reference: &Reference, digest: &Digest) -> Result<BlobSource, Error> {
        let session = Box::pin(self.session_with(reference, digest.as_str())).await?;
        Ok(BlobSource::Registry(session))
    }

    fn places(&self, reference: &Reference, version: &str) -> Result<Places, Error> {
        let places = self.settings().rules.places(reference, version);
        places.ok_or_else(|| self.session(reference).server.failed(ServerFault::Blocked))
    }
}

/// Asks a mirror. A failure is not the end, so it is returned in words.
async fn ask_mirror<T>(session: &Session, asking: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    let asked = within(MIRROR_TIME, asking).await;
    asked.map_err(|error| {
        let failure = model::text::chain(&session.server.redact(error));
        tracing::debug!(failure, "a mirror of the registry failed");
        failure
    })
}
