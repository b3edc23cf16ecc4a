//! Manifests and configs, which are small and read in one piece. Layers, which are streamed and
//! continued where the connection broke. All are verified.

use bytes::Bytes;
use fetch::{FetchError, FetchResponse};
use oci::{BlobRef, Digest, DigestError, NamedLimit, UnpackError};
use reqwest::{Method, StatusCode};
use tokio::sync::mpsc::Sender;

use crate::Error;
use crate::registry::{ApiRequest, Session};
use crate::verify::{BlobCheck, verify, verify_blob, wrong_size};

const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

const DIGEST_HEADER: &str = "docker-content-digest";

impl Session {
    /// Returns the digest of the manifest with that tag or digest: one HEAD, and one GET if the
    /// registry has no HEAD or no digest header.
    pub(crate) async fn resolve(&self, version: &str) -> Result<Digest, Error> {
        let head = self.manifest_request(Method::HEAD, version);
        match self.send(&head).await {
            Err(Error::Server(error)) if error.lacks_api() => {}
            answered => {
                if let Some(digest) = self.promised_digest(&answered?)? {
                    return Ok(digest);
                }
            }
        }
        let get = self.manifest_request(Method::GET, version);
        let response = self.send(&get).await?;
        let promised = self.promised_digest(&response)?;
        let limit = self.settings.limits.manifest();
        let body = self.body(response, limit, "manifest").await?;
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
        match text.parse() {
            Ok(digest) => Ok(Some(digest)),
            Err(DigestError(_)) => {
                let error = DigestError(self.server.secrets.lock().show(&text));
                Err(self.server.failed_at(response, error))
            }
        }
    }

    /// Returns the manifest or index `digest`. The body must hash to it, whatever a header says.
    pub(crate) async fn manifest(&self, digest: &Digest) -> Result<Bytes, Error> {
        let request = self.manifest_request(Method::GET, digest.as_str());
        let limit = self.settings.limits.manifest();
        let body = self.whole_document(&request, limit).await?;
        verify(digest, "manifest", body)
    }

    /// Returns a blob in one piece, verified.
    pub(crate) async fn small_blob(
        &self,
        kind: &'static str,
        blob: &BlobRef,
        limit: NamedLimit,
    ) -> Result<Bytes, Error> {
        let request = self.blob_request(Method::GET, kind, &blob.digest);
        let body = self.whole_document(&request, limit).await?;
        verify_blob(blob, kind, body)
    }

    /// Reads a small document. Requests it again if the body breaks.
    pub(crate) async fn whole_document(
        &self,
        request: &ApiRequest,
        limit: NamedLimit,
    ) -> Result<Bytes, Error> {
        let mut retries = self.server.retries();
        let read = retries.run(|| async {
            let response = self.attempt(request).await?;
            self.body(response, limit, &request.what).await
        });
        read.await
    }

    /// Streams a layer into `to`, and continues where a connection broke. Verifies the whole at its
    /// end.
    pub(crate) async fn stream(&self, blob: &BlobRef, to: Sender<Bytes>) -> Result<(), Error> {
        let mut check = BlobCheck::new(blob);
        let retries = self.server.retries();
        if check.is_complete() {
            return check.finish();
        }
        let mut body = self.request_blob(blob, 0).await?.into_resumable(retries);
        loop {
            // To the end of the blob, or to where the connection breaks.
            let copying = async {
                while let Some(chunk) = self.server.fetched(body.chunk().await)? {
                    check.update(&chunk)?;
                    self.settings.progress.receive(chunk.len());
                    to.send(chunk).await.map_err(|_| UnpackError::Abandoned)?;
                }
                if check.is_complete() {
                    return Ok(());
                }
                Err(self.server.failed(FetchError::Truncated {
                    received: body.position(),
                    expected: blob.size,
                }))
            };
            match copying.await {
                Ok(()) => return check.finish(),
                Err(error) => body.pause(error).await?,
            }
            // `send` has its own retries. Those of the body are for the breaks.
            let rest = self.request_blob(blob, body.position()).await?;
            self.server.fetched(body.continue_with(rest))?;
        }
    }

    async fn request_blob(&self, blob: &BlobRef, position: u64) -> Result<FetchResponse, Error> {
        let mut request = self.blob_request(Method::GET, "layer", &blob.digest);
        request.spec = request.spec.from_position(position);
        let response = self.send(&request).await?.expecting(blob.size - position);
        let is_partial = response.status() == StatusCode::PARTIAL_CONTENT;
        if is_partial && position == 0 {
            // Nothing asked for a part, so the rest could be missing.
            return Err(self.server.failed_at(&response, FetchError::Range));
        }
        match response.content_length() {
            Some(actual) if !is_partial && actual > blob.size => {
                Err(wrong_size("layer", blob, actual))
            }
            _ => Ok(response),
        }
    }

    pub(crate) fn manifest_request(&self, method: Method, version: &str) -> ApiRequest {
        let kind = if version.contains(':') {
            "manifest"
        } else {
            "tag"
        };
        let url = self.url(&format!("manifests/{version}"));
        ApiRequest::new(method, url, format!("{kind} {version}")).accepting(ACCEPT)
    }

    pub(crate) fn blob_request(&self, method: Method, kind: &str, digest: &Digest) -> ApiRequest {
        let url = self.url(&format!("blobs/{digest}"));
        ApiRequest::new(method, url, format!("{kind} {digest}"))
    }
}
