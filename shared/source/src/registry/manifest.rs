//! Manifests and configs: small, in one piece, verified.

use bytes::Bytes;
use fetch::{FetchError, FetchResponse};
use oci::{BlobRef, Digest, DigestError, NamedLimit};
use reqwest::Method;

use crate::blob_source::{verify, verify_blob};
use crate::registry::Session;
use crate::registry::exchange::ApiRequest;
use crate::{Error, ServerFault};

const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

const DIGEST_HEADER: &str = "docker-content-digest";

impl Session {
    /// Returns the digest of the manifest with that tag or digest: one HEAD, and one GET if the registry has no HEAD
    /// or no digest header.
    pub(crate) async fn resolve(&self, version: &str) -> Result<Digest, Error> {
        match self.send(&manifest_request(Method::HEAD, version)).await {
            Err(Error::Server(error)) if refuses_head(&error.fault) => {}
            answered => {
                if let Some(digest) = self.promised_digest(&answered?)? {
                    return Ok(digest);
                }
            }
        }
        let response = self.send(&manifest_request(Method::GET, version)).await?;
        let promised = self.promised_digest(&response)?;
        let body = self.body(response, self.settings.limits.manifest(), "manifest").await?;
        match promised {
            Some(digest) => verify(&digest, "manifest", body).map(|_| digest),
            None => Ok(Digest::of(&body)),
        }
    }

    /// Returns the digest in the header of an answer, not verified.
    fn promised_digest(&self, response: &FetchResponse) -> Result<Option<Digest>, Error> {
        let Some(value) = response.headers().get(DIGEST_HEADER) else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(value.as_bytes());
        let digest = text.parse().map(Some);
        digest.map_err(|_| {
            let error = DigestError(self.server.secrets.lock().show(&text));
            self.server.failed_at(response, error)
        })
    }

    /// Returns the manifest or index `digest`. The body must hash to it, whatever a header says.
    pub(crate) async fn manifest(&self, digest: &Digest) -> Result<Bytes, Error> {
        let request = manifest_request(Method::GET, digest.as_str());
        let body = self.whole_document(&request, self.settings.limits.manifest()).await?;
        verify(digest, "manifest", body)
    }

    /// Returns a blob in one piece, verified.
    pub(crate) async fn small_blob(
        &self,
        kind: &'static str,
        blob: &BlobRef,
        limit: NamedLimit,
    ) -> Result<Bytes, Error> {
        let request = blob_request(Method::GET, kind, &blob.digest);
        let body = self.whole_document(&request, limit).await?;
        verify_blob(blob, kind, body)
    }

    /// Reads a small document. Requests it again if the body breaks.
    pub(crate) async fn whole_document(&self, request: &ApiRequest, limit: NamedLimit) -> Result<Bytes, Error> {
        let attempt = || async {
            let response = self.attempt(request).await?;
            self.body(response, limit, &request.what).await
        };
        self.server.retries().run(attempt).await
    }
}

/// Returns true for the answers of a registry without HEAD.
fn refuses_head(fault: &ServerFault) -> bool {
    match fault {
        ServerFault::PlainHttpRefused => true,
        ServerFault::Fetch(FetchError::Status(status)) => matches!(status.as_u16(), 400 | 405 | 501),
        _ => false,
    }
}

pub(crate) fn manifest_request(method: Method, version: &str) -> ApiRequest {
    let kind = if version.contains(':') { "manifest" } else { "tag" };
    ApiRequest::new(method, format!("manifests/{version}"), format!("{kind} {version}")).accepting(ACCEPT)
}

pub(crate) fn blob_request(method: Method, kind: &str, digest: &Digest) -> ApiRequest {
    ApiRequest::new(method, format!("blobs/{digest}"), format!("{kind} {digest}"))
}
