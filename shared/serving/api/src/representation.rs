//! Representations, which answer a request before its conditions and ranges are applied.

use std::time::SystemTime;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use model::{CachePolicy, Encoding};

use crate::app::StateHead;
use crate::error::ApiError;
use crate::payload::Payload;
use crate::rfc9110::{Modified, Precondition, Tag, evaluate};
use crate::settings::LargeBodies;

/// The answer to a plain GET (RFC 9110, section 3.2), before anything of its body is read.
#[derive(Debug)]
pub(crate) struct Representation {
    pub(crate) tag: Tag,
    pub(crate) modified: Option<Modified>,
    pub(crate) cache: CachePolicy,
    pub(crate) content_type: &'static str,
    pub(crate) encoding: Encoding,
    /// True if the encoding was chosen by `Accept-Encoding`, which makes the answer vary by it.
    pub(crate) negotiated: bool,
    /// Fields that only some routes have.
    pub(crate) extra: Option<Box<HeaderMap>>,
    pub(crate) payload: Payload,
}

impl Representation {
    /// Returns a JSON document that is in memory, which caches may keep as long as a pointer.
    pub(crate) fn document(bytes: Bytes) -> Self {
        Self::of(Payload::Bytes(bytes), CachePolicy::Pointer)
    }

    /// Returns a plain text that is in memory.
    pub(crate) fn text(bytes: Bytes, tag: Tag, cache: CachePolicy) -> Self {
        Self::new(tag, Payload::Bytes(bytes), cache).with_type("text/plain; charset=utf-8")
    }

    /// Returns a payload under the tag of its bytes.
    pub(crate) fn of(payload: Payload, cache: CachePolicy) -> Self {
        Self::new(payload.tag(), payload, cache)
    }

    /// Returns a payload with the content type and the encoding that such payloads usually have.
    pub(crate) const fn new(tag: Tag, payload: Payload, cache: CachePolicy) -> Self {
        let (content_type, encoding) = payload.media();
        Self {
            tag,
            modified: None,
            cache,
            content_type,
            encoding,
            negotiated: false,
            extra: None,
            payload,
        }
    }

    /// Adds the date of the publication.
    pub(crate) fn dated(mut self, head: &StateHead) -> Self {
        self.modified = Some(head.modified.clone());
        self
    }

    /// Replaces the content type.
    pub(crate) const fn with_type(mut self, content_type: &'static str) -> Self {
        self.content_type = content_type;
        self
    }

    /// Adds a field that only some routes have.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.extra.get_or_insert_default().insert(name, value);
        self
    }

    /// Notes that `Accept-Encoding` has chosen this encoding.
    pub(crate) const fn negotiated(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self.negotiated = true;
        self
    }

    /// Returns the fields that answers to conditional requests have in common with the whole one
    /// (RFC 9110, section 15.4.5). Every value is ready: a 304 formats nothing.
    pub(crate) fn begin(&self, status: StatusCode, now: SystemTime) -> Response<Body> {
        let mut headers = HeaderMap::with_capacity(12);
        headers.insert(header::ETAG, self.tag.header().clone());
        let cache = HeaderValue::from_static(self.cache.cache_control());
        headers.insert(header::CACHE_CONTROL, cache);
        if self.negotiated {
            headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if let Some(modified) = &self.modified {
            headers.insert(header::LAST_MODIFIED, modified.header(now));
        }
        headers.extend(self.extra.as_deref().cloned().unwrap_or_default());
        // Not from a tuple, which would insert each field a second time.
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    /// Returns a redirect for a body above the limit, if an object has exactly its bytes.
    pub(crate) async fn redirect(
        &self,
        large: &LargeBodies,
        now: SystemTime,
    ) -> Result<Option<Response<Body>>, ApiError> {
        let object = match &self.payload {
            Payload::Object(object) if object.digest.size > large.above => object,
            _ => return Ok(None),
        };
        let unknown = |source| ApiError::Locate(object.key(), source);
        let url = large.to.locate(&object.key()).await.map_err(unknown)?;
        let url = HeaderValue::try_from(url).map_err(|source| unknown(source.into()))?;
        // 307 and not 301 or 308: the next publication has another object.
        let mut response = self.begin(StatusCode::TEMPORARY_REDIRECT, now);
        response.headers_mut().insert(header::LOCATION, url);
        // As long as a pointer may be cached, because the redirect depends on the published state.
        let max_age = HeaderValue::from_static("public, max-age=60");
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, max_age);
        Ok(Some(response))
    }

    /// Evaluates the preconditions of a request.
    pub(crate) fn evaluate(&self, headers: &HeaderMap) -> Precondition {
        evaluate(headers, &self.tag, self.modified.as_ref())
    }
}
