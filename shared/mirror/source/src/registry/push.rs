//! Pushing an image: the blobs that the registry lacks, then the manifests, then the tag (OCI
//! distribution specification v1.1, "Push").

use bytes::Bytes;
use oci::{Digest, Documents, media_type};
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, Url};

use crate::registry::{ApiRequest, Session, if_found};
use crate::{Error, ServerFault};

/// Media type of a blob that is uploaded.
const BLOB: &str = "application/octet-stream";

/// Result of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// Digest of the image.
    pub digest: Digest,
    /// True if the tag had this digest already, so that nothing was sent.
    pub was_there: bool,
}

/// Pushes an image of one layer under a tag, or under its digest alone if there is none.
pub(crate) async fn push(
    session: &Session,
    tag: Option<&str>,
    documents: Documents,
    layer: Bytes,
) -> Result<Pushed, Error> {
    let index = Bytes::from(documents.index);
    let digest = Digest::of(&index);
    let version = tag.unwrap_or(digest.as_str());
    // Some registries answer 404 for a repository that the push creates, others that the name is
    // unknown.
    if if_found(session.resolve(version).await)? == Some(digest.clone()) {
        return Ok(Pushed {
            digest,
            was_there: true,
        });
    }
    for config in documents.configs {
        session.push_blob(config.into()).await?;
    }
    session.push_blob(layer).await?;
    for manifest in documents.manifests {
        let digest = Digest::of(&manifest);
        session
            .push_manifest(digest.as_str(), media_type::MANIFEST, manifest.into())
            .await?;
    }
    session
        .push_manifest(version, media_type::INDEX, index)
        .await?;
    Ok(Pushed {
        digest,
        was_there: false,
    })
}

impl Session {
    /// Uploads a blob in one piece, unless the registry has it.
    async fn push_blob(&self, blob: Bytes) -> Result<(), Error> {
        let digest = Digest::of(&blob);
        let request = self.blob_request(Method::HEAD, "blob", &digest);
        if if_found(self.send(&request).await)?.is_some() {
            return Ok(());
        }
        let mut retries = self.server.retries();
        let uploaded = retries.run(|| async {
            // Begun anew for each attempt: an upload whose connection broke may be half written.
            let url = self.begin_upload(&digest, &request.what).await?;
            let request = put(url, BLOB, blob.clone(), request.what.clone());
            self.attempt(&request).await.map(drop)
        });
        uploaded.await
    }

    /// Returns the URL to which the blob is put.
    async fn begin_upload(&self, digest: &Digest, what: &str) -> Result<Url, Error> {
        let request = ApiRequest::new(Method::POST, self.url("blobs/uploads/"), what.to_owned());
        let response = self.attempt(&request).await?;
        let field = response.headers().get(LOCATION);
        let location = field.and_then(|value| value.to_str().ok());
        let target = location.and_then(|location| self.own_url(response.url(), location).ok());
        let Some(mut target) = target else {
            let fault = ServerFault::UploadLocation;
            return Err(self.server.failed_at(&response, fault));
        };
        target
            .query_pairs_mut()
            .append_pair("digest", digest.as_str());
        Ok(target)
    }

    async fn push_manifest(
        &self,
        version: &str,
        media_type: &'static str,
        manifest: Bytes,
    ) -> Result<(), Error> {
        let url = self.url(&format!("manifests/{version}"));
        let what = format!("manifest {version}");
        let request = put(url, media_type, manifest, what);
        self.send(&request).await.map(drop)
    }
}

fn put(url: Url, media_type: &'static str, bytes: Bytes, what: String) -> ApiRequest {
    let mut request = ApiRequest::new(Method::PUT, url, what);
    let media_type = HeaderValue::from_static(media_type);
    request.spec.headers.insert(CONTENT_TYPE, media_type);
    request.spec.body = Some(bytes);
    request
}
