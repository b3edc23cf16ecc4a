//! From a response to what a function may answer.

use std::{future::ready, pin::Pin};

use axum::body::Body;
use http_body_util::{BodyExt, Limited};
use lambda_http::{
    IntoResponse,
    http::{
        HeaderValue, Response, StatusCode,
        header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
    },
};

/// The largest answer of a function in bytes of JSON (AWS Lambda Developer Guide, "Lambda quotas": 6 MB).
pub const PAYLOAD_MAX: u64 = 6 << 20;

/// What an answer holds beside its body, generously: a dozen header fields in 2 kB, and the heads of the at most 16
/// parts of a `multipart/byteranges` in 3 kB, of which base64 makes 4.
const ENVELOPE_MAX: u64 = 16 << 10;

/// The largest body in bytes that a function can answer. Base64 makes four bytes of three; that is the whole
/// arithmetic, because every body is sent that way.
pub const INLINE_MAX: u64 = (PAYLOAD_MAX - ENVELOPE_MAX) / 4 * 3;

/// The heads of all parts, before base64.
const PARTS_MAX: u64 = 8 << 10;

/// A complete answer. Its body goes out as base64 whatever it is. As text, which the library prefers for JSON, it
/// would be escaped, so that its size depended on how many quotes it has; a range that begins inside a character
/// would be altered; and for catalogs little would be saved, with a quote in every fourth byte.
#[derive(Debug)]
pub(crate) struct Answer(Response<Vec<u8>>);

impl Answer {
    /// Reads a response to its end. One that is cut off is no answer: nothing has been sent yet, so it gets a status
    /// that says so. What went wrong has been logged where it did.
    pub(crate) async fn collect(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let limit = usize::try_from(INLINE_MAX + PARTS_MAX).unwrap_or(usize::MAX);
        match Limited::new(body, limit).collect().await {
            Ok(body) => Self(Response::from_parts(head, body.to_bytes().into())),
            Err(error) => {
                tracing::debug!(error = error.as_ref(), "a body cannot be answered");
                Self(unavailable())
            }
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.status()
    }

    pub(crate) fn size(&self) -> usize {
        self.0.body().len()
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Pin<Box<dyn Future<Output = Response<lambda_http::Body>> + Send>> {
        let encoded = self.0.map(|body| match body.is_empty() {
            true => lambda_http::Body::Empty,
            false => lambda_http::Body::Binary(body),
        });
        Box::pin(ready(encoded))
    }
}

fn unavailable() -> Response<Vec<u8>> {
    let body = b"{\"title\":\"Service Unavailable\",\"status\":503}\n".to_vec();
    let mut response = Response::new(Vec::new());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
    *response.body_mut() = body;
    response
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    async fn collected(chunks: Vec<Result<Vec<u8>, &'static str>>) -> Answer {
        Answer::collect(Response::new(Body::from_stream(stream::iter(chunks)))).await
    }

    /// Nothing has been sent yet, so it need not end in half an answer.
    #[tokio::test]
    async fn a_body_that_is_cut_off_is_a_failure() {
        let answer = collected(vec![Ok(b"{}".to_vec()), Err("gone")]).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.0.headers()[CONTENT_LENGTH], answer.size().to_string());
    }

    #[tokio::test]
    async fn nothing_above_the_limit_is_answered_whatever_the_settings() {
        let limit = usize::try_from(INLINE_MAX + PARTS_MAX).unwrap();
        let whole = collected(vec![Ok(vec![b'x'; limit])]).await;
        assert_eq!((whole.status(), whole.size()), (StatusCode::OK, limit));
        let more = collected(vec![Ok(vec![b'x'; limit]), Ok(vec![b'x'])]).await;
        assert_eq!(more.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
