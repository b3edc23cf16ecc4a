//! Pushing an image: the blobs that the registry lacks, then the manifests, then the tag (OCI
//! distribution specification v1.1, "Push").

use bytes::Bytes;
use oci::{Digest, Documents, media_type};
use oci_client::Reference;
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, Url};

use crate::registry::{ApiRequest, Session, if_found};
use crate::{Error, ServerFault, Sources};

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

impl Sources {
    /// Pushes an image of one layer under the tag of `reference`, or under its digest alone if it
    /// has no tag.
    ///
    /// # Errors
    /// A registry that cannot be reached or refuses the push. The tag is set last, so it never
    /// names half an image.
    pub async fn push(
        &self,
        reference: &Reference,
        documents: Documents,
        layer: Bytes,
    ) -> Result<Pushed, Error> {
        let session = self.session_for(reference, "pull,push")?;
        let index = Bytes::from(documents.index);
        let digest = Digest::of(&index);
        let version = reference.tag().unwrap_or(digest.as_str());
        // Some registries answer 404 for a repository that the push creates, others that the name
        // is unknown.
        let was_there = if_found(session.resolve(version).await)? == Some(digest.clone());
        if !was_there {
            let configs = documents.configs.into_iter().map(Bytes::from);
            for blob in configs.chain([layer]) {
                session.push_blob(blob).await?;
            }
            for manifest in documents.manifests {
                let digest = Digest::of(&manifest);
                session
                    .push_manifest(digest.as_str(), media_type::MANIFEST, manifest.into())
                    .await?;
            }
            session
                .push_manifest(version, media_type::INDEX, index)
                .await?;
        }
        Ok(Pushed { digest, was_there })
    }
}

impl Session {
    /// Uploads a blob in one piece, unless the registry has it.
    async fn push_blob(&self, blob: Bytes) -> Result<(), Error> {
        let digest = Digest::of(&blob);
        let request = self.blob_request(Method::HEAD, "blob", &digest);
        if if_found(self.send(&request).await)?.is_some() {
            return Ok(());
        }
        let upload = || async {
            // Begun anew for each attempt: an upload whose connection broke may be half written.
            let url = self.begin_upload(&digest, &request.what).await?;
            let request = put(url, BLOB, blob.clone(), request.what.clone());
            self.attempt(&request).await.map(drop)
        };
        self.server.retries().run(upload).await
    }

    /// Returns the URL to which the blob is put.
    async fn begin_upload(&self, digest: &Digest, what: &str) -> Result<Url, Error> {
        let request = ApiRequest::new(Method::POST, self.url("blobs/uploads/"), what.to_owned());
        let response = self.attempt(&request).await?;
        let location = response
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok());
        let target = location.and_then(|location| self.own_url(response.url(), location).ok());
        let Some(mut target) = target else {
            return Err(self
                .server
                .failed_at(&response, ServerFault::UploadLocation));
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
        let what = format!("manifest {version}");
        let request = put(
            self.url(&format!("manifests/{version}")),
            media_type,
            manifest,
            what,
        );
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
