//! Signatures: manifests under tags, small blobs, and files below a URL beside the registry.

use bytes::Bytes;
use fetch::{RedirectRefusal, RequestSpec};
use oci::BlobRef;
use reqwest::{Method, StatusCode, Url};

use crate::error::Error;
use crate::registry::Session;
use crate::registry::exchange::if_found;
use crate::registry::manifest::manifest_request;

impl Session {
    /// Returns the manifest or index under a tag, or `None` if there is no such tag.
    pub(crate) async fn tagged(&self, tag: &str) -> Result<Option<Bytes>, Error> {
        let what = format!("tag {tag}");
        let request = manifest_request(Method::GET, tag, &what);
        let document = if_found(self.whole_document(&request, self.settings.limits.manifest()).await)?;
        Ok(document.map(|document| document.body))
    }

    /// Returns a signed payload or a whole signature, verified against its digest only.
    pub(crate) async fn signature(&self, blob: &BlobRef) -> Result<Bytes, Error> {
        self.small_blob("signature", blob, self.settings.limits.signature())
            .await
    }

    /// Returns the file at a URL, requested without credentials, or `None` if there is none.
    pub(crate) async fn file_at(&self, url: &Url) -> Result<Option<Bytes>, Error> {
        if url.scheme() == "http" && !self.settings.http.allows_plain_http(&fetch::authority(url)) {
            return Err(self.server.failed(RedirectRefusal::PlainHttp.error(url)));
        }
        self.server.retries().run(|| self.try_file_at(url)).await
    }

    async fn try_file_at(&self, url: &Url) -> Result<Option<Bytes>, Error> {
        let response = self.server.follow(url.clone(), &RequestSpec::default()).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK => self
                .body(response, self.settings.limits.signature(), url.path())
                .await
                .map(Some),
            status => Err(self
                .server
                .failed(self.status_fault(status, response.headers(), url.path()))),
        }
    }
}
