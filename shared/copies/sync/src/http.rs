//! A mirror behind HTTP: a CDN, a reader, or a static file server over a store's folder.

use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use fetch::{
    AttemptCount, FailedFetch, FetchError, FetchResponse, FetchSettings, FetchSettingsError,
    Fetcher, RequestError, RequestSpec, ResumableBody, Retries,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use model::{Encoding, Key, Sha256};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, IF_NONE_MATCH};
use store::{
    Body, DOCUMENT_MAX, Fetched, Get, Object, ObjectInfo, Operation, ReadStore, StoreError,
    StoreExt, Version,
};

use crate::Address;

/// Another mirror, its CDN or its bucket, by a URL.
#[derive(Debug, Clone)]
pub struct HttpMirror {
    address: Address,
    fetcher: Fetcher,
}

impl HttpMirror {
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

    /// Sends a request for a key once.
    async fn attempt(
        &self,
        key: &Key,
        request: &RequestSpec,
    ) -> Result<FetchResponse, MirrorError> {
        let response = self.fetcher.follow(self.address.url(key), request).await?;
        let status = response.status();
        match status.as_u16() {
            // Objects that are stored with a coding have their hash with it.
            200..300 => Ok(response.keeping(key.encoding().content_encoding().as_slice())),
            304 if request.headers.contains_key(IF_NONE_MATCH) => Ok(response),
            404 | 410 => Err(MirrorError::NotFound),
            401 | 403 => Err(MirrorError::Refused(status)),
            _ => {
                let error = FetchError::from_status(status, response.headers());
                Err(error.at(response.peer).into())
            }
        }
    }

    /// Reads a body of at most [`DOCUMENT_MAX`] bytes into memory. A document can change between
    /// two attempts, so a broken one is read again from its start. Returns `None` if the server
    /// answers that nothing has changed.
    async fn whole(&self, key: &Key, request: &RequestSpec) -> Result<Option<Bytes>, MirrorError> {
        let mut retries = Retries::new(&self.fetcher);
        let document = retries.run(|| async {
            let response = self.attempt(key, request).await?;
            if response.status() == StatusCode::NOT_MODIFIED {
                return Ok(None);
            }
            Ok(Some(response.bytes(DOCUMENT_MAX).await?))
        });
        document.await
    }

    /// Reads a mutable document, unless its bytes have the hash `known`.
    async fn document(
        &self,
        key: &Key,
        known: Option<Sha256>,
    ) -> Result<Option<Bytes>, MirrorError> {
        let mut request = self.address.request.clone();
        // Decoded as it is read, up to the limit of the document.
        request
            .headers
            .insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(hash) = known {
            // Mirrors send small documents plain, as earlier versions sent all.
            let tags =
                [Encoding::Gzip, Encoding::Identity].map(|encoding| hash.to_entity_tag(encoding));
            let field = HeaderValue::try_from(tags.join(", "));
            let field = field.expect("entity tags are plain text");
            request.headers.insert(IF_NONE_MATCH, field);
        }
        self.whole(key, &request).await
    }

    /// Opens an immutable object.
    async fn object(&self, key: &Key) -> Result<SizedBody, MirrorError> {
        let request = &self.address.request;
        let mut retries = Retries::new(&self.fetcher);
        let response = retries.run(|| self.attempt(key, request)).await?;
        let Some(size) = response.content_length() else {
            // Few servers do not tell the size of a file. They are asked once more, so that a
            // connection that breaks is repaired in the same way.
            let bytes = self.whole(key, request).await?;
            return Ok(SizedBody::of(bytes.unwrap_or_default()));
        };
        let reading = ReadingBody {
            mirror: self.clone(),
            key: key.clone(),
            body: response.into_resumable(retries),
        };
        let key = key.clone();
        let body = stream::try_unfold(reading, ReadingBody::next);
        let body = body.map_err(move |error| error.of(&key)).boxed();
        Ok(SizedBody { size, body })
    }
}

/// Reads a mirror like any store. The version of an object is the hash of its bytes.
#[async_trait]
impl ReadStore for HttpMirror {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        let (found, version) = match key {
            Key::Object(_, hash) => {
                let found = self.object(key).await.map_err(|error| error.of(key))?;
                (found, version(*hash))
            }
            _ => {
                let known = get.unless.as_ref().and_then(|known| known.0.parse().ok());
                let read = self.document(key, known).await;
                let Some(bytes) = read.map_err(|error| error.of(key))? else {
                    return Ok(Fetched::NotModified);
                };
                let version = version(Sha256::of(&bytes));
                (SizedBody::of(bytes), version)
            }
        };
        if get.unless.as_ref() == Some(&version) {
            return Ok(Fetched::NotModified);
        }
        let range = get.resolve(found.size, key)?;
        Ok(Fetched::Object(Object {
            info: object_info(found.size, version),
            body: found.part(range),
        }))
    }

    /// Asks for the object and drops its body: only the bytes of a document tell its size.
    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        match self.open(key, None).await {
            Err(error) if error.is_not_found() => Ok(None),
            opened => Ok(Some(opened?.info)),
        }
    }
}

/// Returns the version of an object of a mirror or of an archive, from the hash of its bytes.
pub(crate) fn version(hash: Sha256) -> Version {
    Version(hash.to_string())
}

/// Returns the facts about an object of a mirror or of an archive, which does not tell the time of
/// its last write.
pub(crate) const fn object_info(size: u64, version: Version) -> ObjectInfo {
    ObjectInfo {
        size,
        version,
        modified: SystemTime::UNIX_EPOCH,
    }
}

/// Body of a whole object with its size in bytes.
struct SizedBody {
    size: u64,
    body: Body,
}

impl SizedBody {
    fn of(bytes: Bytes) -> Self {
        Self {
            size: bytes.len() as u64,
            body: stream::iter([Ok(bytes)]).boxed(),
        }
    }

    /// Returns the bytes of a range. The others are read and dropped, because only whole objects of
    /// another mirror are read often.
    fn part(self, range: std::ops::Range<u64>) -> Body {
        if range == (0..self.size) {
            return self.body;
        }
        let mut position = 0;
        let parts = self.body.map_ok(move |chunk| {
            let start = position;
            position += chunk.len() as u64;
            let from = range.start.clamp(start, position) - start;
            let to = range.end.clamp(start, position) - start;
            chunk.slice(from as usize..to as usize)
        });
        parts
            .try_filter(|part| std::future::ready(!part.is_empty()))
            .boxed()
    }
}

/// An object whose body is being read.
struct ReadingBody {
    mirror: HttpMirror,
    key: Key,
    body: ResumableBody,
}

impl ReadingBody {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, MirrorError> {
        loop {
            match self.body.chunk().await {
                Ok(None) => return Ok(None),
                Ok(Some(chunk)) => return Ok(Some((chunk, self))),
                Err(failed) => self.body.pause(MirrorError::from(failed)).await?,
            }
            let request = self.body.request_rest(self.mirror.address.request.clone());
            let mirror = &self.mirror;
            let key = &self.key;
            let retries = &mut self.body.retries;
            let response = retries.run(|| mirror.attempt(key, &request)).await?;
            self.body.continue_with(response)?;
        }
    }
}

/// Failure of a request to a mirror.
#[derive(Debug, thiserror::Error)]
enum MirrorError {
    #[error("there is no such object")]
    NotFound,
    #[error("{0}, it wants credentials or other ones")]
    Refused(StatusCode),
    #[error("the request failed{attempts}")]
    Fetch {
        attempts: AttemptCount,
        source: FailedFetch,
    },
}

impl MirrorError {
    /// Adds the key that was requested.
    fn of(self, key: &Key) -> StoreError {
        match self {
            Self::NotFound => StoreError::not_found(key),
            Self::Refused(_) => StoreError::denied(Operation::Get, key, self),
            Self::Fetch { .. } => StoreError::failed(Operation::Get, key, self),
        }
    }
}

impl From<FailedFetch> for MirrorError {
    fn from(source: FailedFetch) -> Self {
        Self::Fetch {
            attempts: AttemptCount::default(),
            source,
        }
    }
}

impl RequestError for MirrorError {
    fn exchange_mut(&mut self) -> Option<(&mut FetchError, &mut AttemptCount)> {
        match self {
            Self::Fetch { attempts, source } => Some((&mut source.error, attempts)),
            _ => None,
        }
    }
}
