//! Answers: the conditions and ranges of a request applied to a representation.

use std::{convert::Infallible, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use http::{HeaderValue, Method, Response, StatusCode, header};
use reader::{Extent, small};
use work::HeldMemory;

use crate::call::RouteCall;
use crate::coding::encode;
use crate::error::ApiError;
use crate::memory::{LoadedPayload, holder};
use crate::payload::Payload;
use crate::representation::Representation;
use crate::rfc9110::{Precondition, if_range_holds, parse_range};

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
