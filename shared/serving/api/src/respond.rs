use std::{convert::Infallible, sync::Arc, time::SystemTime};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use model::{CachePolicy, Encoding};
use reader::{Extent, small};
use work::HeldMemory;

use crate::app::StateHead;
use crate::error::ApiError;
use crate::memory::{LoadedPayload, holder};
use crate::payload::{Payload, encode};
use crate::rfc9110::{Modified, Precondition, Tag, evaluate, if_range_holds, parse_range};
use crate::routes::RouteCall;
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
    fn begin(&self, status: StatusCode, now: SystemTime) -> Response<Body> {
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
    async fn redirect(
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

impl RouteCall<'_> {
    /// Answers with a representation, as far as the conditions and ranges of the request allow.
    pub(crate) async fn respond(
        self,
        representation: Representation,
    ) -> Result<Response<Body>, ApiError> {
        let request_headers = &self.request.headers;
        let now = (self.app.settings.clock)();
        match representation.evaluate(request_headers) {
            Precondition::Proceed => {}
            Precondition::NotModified => {
                // On a 304 a length would be a claim about the representation (RFC 9110, section
                // 8.6).
                let response = representation.begin(StatusCode::NOT_MODIFIED, now);
                return Ok(response.map(|_| unknown_length()));
            }
            Precondition::Failed => return Err(ApiError::PreconditionFailed),
        }
        let is_get = self.request.method == Method::GET;
        let large = self.app.settings.large.as_ref().filter(|_| is_get);
        if let Some(large) = large
            && let Some(redirect) = Box::pin(representation.redirect(large, now)).await?
        {
            return Ok(redirect);
        }
        // A range of HEAD is ignored (RFC 9110, section 14.2).
        let ranged = is_get && if_range_holds(request_headers, &representation.tag);
        let range = request_headers.get(header::RANGE).filter(|_| ranged);
        let mut response = representation.begin(StatusCode::OK, now);
        let headers = response.headers_mut();
        let content_type = HeaderValue::from_static(representation.content_type);
        headers.insert(header::CONTENT_TYPE, content_type);
        if let Some(encoding) = representation.encoding.content_encoding() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        let loading = Box::pin(self.load(representation.payload));
        let LoadedPayload { payload, memory } = loading.await?;
        let length = payload.length();
        if large.is_some_and(|large| length.unwrap_or(u64::MAX) > large.max) {
            return Err(ApiError::TooLarge);
        }
        let mut extent = Extent::Whole;
        // A body of unknown length is compressed as it is sent: the next time its bytes may differ,
        // so it has no ranges.
        if let Some(length) = length {
            let headers = response.headers_mut();
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            if let Some(range) = range
                && let Some(part) = parse_range(range.as_bytes(), length)?
            {
                let content_range = format!("bytes {}-{}/{length}", part.start, part.end - 1);
                let content_range =
                    HeaderValue::try_from(content_range).expect("digits are visible ASCII");
                headers.insert(header::CONTENT_RANGE, content_range);
                headers.insert(
                    header::CONTENT_LENGTH,
                    HeaderValue::from(part.end - part.start),
                );
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                extent = Extent::Part(part);
            }
        }
        if self.request.method != Method::HEAD {
            *response.body_mut() = self.body(payload, memory, extent).await?;
        } else if length.is_none() {
            // Where GET streams a body of unknown length, HEAD does not claim zero (RFC 9110,
            // section 8.6).
            *response.body_mut() = unknown_length();
        }
        Ok(response)
    }

    /// Returns the bytes of a payload as a body. The first read has happened when this returns, so
    /// that a failure still gets its status.
    async fn body(
        self,
        payload: Payload,
        memory: Option<HeldMemory>,
        extent: Extent,
    ) -> Result<Body, ApiError> {
        let catalogs = &self.app.catalogs;
        let route = self.matched.value.path;
        let chunks = match payload {
            Payload::Bytes(_) | Payload::Document { .. } | Payload::Changes { .. } => {
                // In memory since the payload was loaded.
                let mut bytes = Box::pin(self.kept(&payload)).await?.unwrap_or_default();
                if let Extent::Part(range) = extent {
                    bytes = bytes.slice(small(range.start)..small(range.end));
                }
                self.app.metrics.bytes(route).inc_by(bytes.len() as u64);
                return Ok(Body::from(match memory {
                    Some(memory) => Arc::new(memory).hold(bytes),
                    None => bytes,
                }));
            }
            Payload::Object(object) => Box::pin(catalogs.stream_object(&object, extent)).await?,
            Payload::Lines { lines, encoding } => {
                let plain = Box::pin(catalogs.lines(&lines, extent)).await?;
                encode(plain, encoding, lines.key())?
            }
        };
        let sent = self.app.metrics.bytes(route);
        let hold = holder(memory);
        let counted = chunks.map_ok(move |chunk| {
            sent.inc_by(chunk.len() as u64);
            hold(chunk)
        });
        // An error in the middle ends the connection before the announced length, so no client
        // takes the body for a complete one. It is logged here because no status can tell it any
        // more.
        Ok(Body::from_stream(counted.inspect_err(move |error| {
            tracing::error!(
                error = %model::text::Chain(error),
                route,
                "cut off a response body"
            );
        })))
    }
}

/// Returns an empty body that does not announce its length.
fn unknown_length() -> Body {
    Body::from_stream(stream::empty::<Result<Bytes, Infallible>>())
}
