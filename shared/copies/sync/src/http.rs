//! A mirror behind HTTP: a CDN, a reader, or a static file server over a store's folder.

use async_trait::async_trait;
use bytes::Bytes;
use fetch::{
    FetchError, FetchResponse, FetchSettings, FetchSettingsError, Fetcher, RequestSpec,
    ResumableBody, Retries,
};
use futures_util::{StreamExt, stream};
use model::{Encoding, Key, Sha256};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, IF_NONE_MATCH};
use store::DOCUMENT_MAX;

use crate::{Address, Origin, OriginBody, OriginError};

/// Origin at the URL of another mirror, its CDN or its bucket.
#[derive(Debug, Clone)]
pub struct HttpOrigin {
    address: Address,
    fetcher: Fetcher,
}

impl HttpOrigin {
    /// Creates a client for the mirror at `address`, whose URL decides about plain HTTP; sends
    /// nothing. Every request to the mirror itself has `headers`, such as `Authorization`. After a
    /// redirect to another server they are left out.
    ///
    /// # Errors
    /// [`FetchSettingsError`] for CA files and proxies that cannot be used.
    pub fn new(
        mut address: Address,
        mut http: FetchSettings,
        headers: HeaderMap,
    ) -> Result<Self, FetchSettingsError> {
        // What the user reaches over plain HTTP may redirect to plain HTTP.
        http.plain_http_everywhere = address.base.scheme() == "http";
        // As credentials and not as plain headers: a redirect to another server must not carry
        // them.
        address.request.credentials.extend(headers);
        let fetcher = Fetcher::new(http)?;
        Ok(Self { address, fetcher })
    }

    async fn attempt(
        &self,
        key: &Key,
        request: &RequestSpec,
    ) -> Result<FetchResponse, OriginError> {
        let failed = |failed| OriginError::fetch(key, failed);
        let response = self.fetcher.follow(self.address.url(key), request).await;
        let response = response.map_err(failed)?;
        let status = response.status();
        match status.as_u16() {
            // Objects that are stored with a coding have their hash with it.
            200..300 => Ok(response.keeping(key.encoding().content_encoding().as_slice())),
            304 if request.headers.contains_key(IF_NONE_MATCH) => Ok(response),
            404 | 410 => Err(OriginError::NotFound(key.to_string())),
            401 | 403 => Err(OriginError::Refused(format!(
                "cannot fetch {key}: {status}, it wants credentials or other ones"
            ))),
            _ => Err(failed(
                FetchError::from_status(status, response.headers()).at(response.peer),
            )),
        }
    }
}

#[async_trait]
impl Origin for HttpOrigin {
    async fn document(&self, key: &Key, known: Option<&Bytes>) -> Result<Bytes, OriginError> {
        let mut request = self.address.request.clone();
        let headers = &mut request.headers;
        // Decoded as it is read, up to the limit of the document.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(bytes) = known {
            let hash = Sha256::of(bytes);
            // Mirrors send small documents plain, as earlier versions sent all.
            let tags =
                [Encoding::Gzip, Encoding::Identity].map(|encoding| hash.to_entity_tag(encoding));
            let tags = HeaderValue::try_from(tags.join(", "));
            headers.insert(IF_NONE_MATCH, tags.expect("entity tags are plain text"));
        }
        // A document can change between two attempts, so a broken one is read again from its start.
        let attempt = || async {
            let response = self.attempt(key, &request).await?;
            if let (StatusCode::NOT_MODIFIED, Some(known)) = (response.status(), known) {
                return Ok(known.clone());
            }
            let read = response.bytes(DOCUMENT_MAX).await;
            read.map_err(|failed| OriginError::fetch(key, failed))
        };
        Retries::new(&self.fetcher).run(attempt).await
    }

    async fn object(&self, key: &Key, size: u64) -> Result<OriginBody, OriginError> {
        let mut retries = Retries::new(&self.fetcher);
        let response = retries
            .run(|| self.attempt(key, &self.address.request))
            .await?;
        let object = ObjectBody {
            origin: self.clone(),
            key: key.clone(),
            max: size,
            body: response.into_resumable(retries),
        };
        Ok(stream::try_unfold(object, ObjectBody::next).boxed())
    }
}

/// An object whose body is being read.
struct ObjectBody {
    origin: HttpOrigin,
    key: Key,
    /// Maximum size of the body, in bytes.
    max: u64,
    body: ResumableBody,
}

impl ObjectBody {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, OriginError> {
        loop {
            match self.body.chunk().await {
                Ok(None) => return Ok(None),
                Ok(Some(_)) if self.body.position() > self.max => {
                    return Err(OriginError::too_large(&self.key, self.max));
                }
                Ok(Some(chunk)) => return Ok(Some((chunk, self))),
                Err(failed) => {
                    self.body
                        .pause(OriginError::fetch(&self.key, failed))
                        .await?;
                }
            }
            let request = self.body.request_rest(self.origin.address.request.clone());
            let (origin, key) = (&self.origin, &self.key);
            let response = self
                .body
                .retries
                .run(|| origin.attempt(key, &request))
                .await?;
            let continued = self.body.continue_with(response);
            continued.map_err(|failed| OriginError::fetch(key, failed))?;
        }
    }
}
