//! Pushing an image: the blobs that the registry lacks, then the manifests, then the tag (OCI
//! distribution specification v1.1, "Push").

use bytes::Bytes;
use fetch::{FetchResponse, RequestSpec};
use oci::{Digest, Documents, media_type};
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;

use crate::registry::{ApiRequest, Session, if_found};
use crate::{Error, ServerFault};

/// Media type of a blob that is uploaded.
const BLOB: &str = "application/octet-stream";

/// Maximum size of the answer to a refused push in bytes: many times that of any registry.
const REFUSAL_BYTES_MAX: u64 = 64 << 10;

/// Body of an error (OCI distribution specification, "Error Codes").
#[derive(Deserialize)]
struct RefusalBody {
    #[serde(default)]
    errors: Vec<RefusalError>,
}

#[derive(Deserialize)]
struct RefusalError {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

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

/// Begins an upload and cancels it, so that a registry that takes no push says so before anything
/// else is done.
pub(crate) async fn check_push(session: &Session) -> Result<(), Error> {
    let mut retries = session.server.retries();
    let digest = Digest::of(b"");
    let begun = retries.run(|| session.begin_upload(&digest, "upload"));
    let url = begun.await?;
    let request = ApiRequest::new(Method::DELETE, url, "upload".to_owned());
    // An upload that nothing is sent to ends by itself.
    session.attempt(&request).await.ok();
    Ok(())
}

/// Pushes an index that names an image which no registry has, and removes it again.
pub(crate) async fn check_sparse(session: &Session) -> Result<(), Error> {
    let absent = Digest::of(b"an image that is in no registry");
    let index = serde_json::json!({
        "schemaVersion": 2,
        "mediaType": media_type::INDEX,
        "manifests": [{
            "mediaType": media_type::MANIFEST,
            "digest": absent.as_str(),
            "size": 2,
            "platform": {"os": "linux", "architecture": "amd64"},
        }],
    });
    let index = Bytes::from(index.to_string());
    let version = Digest::of(&index);
    session
        .push_manifest(version.as_str(), media_type::INDEX, index)
        .await?;
    let url = session.url(&format!("manifests/{version}"));
    let request = ApiRequest::new(Method::DELETE, url, format!("manifest {version}"));
    // Without a tag it is removed with the next garbage collection at the latest.
    session.attempt(&request).await.ok();
    Ok(())
}

/// Returns true if the answer to a request that writes is no for good. A challenge and an answer to
/// try again later are none.
pub(super) fn is_refusal(request: &RequestSpec, response: &FetchResponse) -> bool {
    let is_write = matches!(request.method, Method::POST | Method::PUT | Method::PATCH);
    let status = response.status();
    let may_pass = matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
    );
    // The usual answer of a server that expects TLS. A registry answers in JSON.
    let media_type = response.headers().get(CONTENT_TYPE);
    let is_json = media_type.is_some_and(|found| found.as_bytes().starts_with(b"application/json"));
    let is_bad = status == StatusCode::BAD_REQUEST && !is_json;
    let wants_tls = is_bad && response.url().scheme() == "http";
    is_write && response.is_home && status.is_client_error() && !may_pass && !wants_tls
}

/// Reads the first message of a refusal, if there is one. It may repeat a secret.
pub(super) async fn words(response: FetchResponse) -> Option<String> {
    let body = response.bytes(REFUSAL_BYTES_MAX).await.ok()?;
    let body: RefusalBody = serde_json::from_slice(&body).ok()?;
    let RefusalError { code, message } = body.errors.into_iter().next()?;
    let words = if message.is_empty() { code } else { message };
    (!words.is_empty()).then_some(words)
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

    pub(crate) async fn push_manifest(
        &self,
        version: &str,
        media_type: &str,
        manifest: Bytes,
    ) -> Result<(), Error> {
        let url = self.url(&format!("manifests/{version}"));
        let what = format!("manifest {version}");
        let request = put(url, media_type, manifest, what);
        self.send(&request).await.map(drop)
    }
}

fn put(url: Url, media_type: &str, bytes: Bytes, what: String) -> ApiRequest {
    let mut request = ApiRequest::new(Method::PUT, url, what);
    // A media type with signs that no header may have is none that a registry knows.
    let media_type = HeaderValue::from_str(media_type);
    let media_type = media_type.unwrap_or(HeaderValue::from_static(BLOB));
    request.spec.headers.insert(CONTENT_TYPE, media_type);
    request.spec.body = Some(bytes);
    request
}
