//! Turns a response into the answer of a function, which is limited in size.

use std::{error::Error, future::ready, pin::Pin, time::Duration};

use api::Locate;
use async_trait::async_trait;
use axum::body::Body;
use http_body_util::{BodyExt, Limited};
use lambda_http::IntoResponse;
use lambda_http::http::{Response, StatusCode, header};
use model::Key;
use store::s3::S3Store;

/// Maximum size of a function's answer, in bytes of JSON (AWS Lambda Developer Guide, "Lambda
/// quotas": 6 MB).
pub const PAYLOAD_MAX: u64 = 6 << 20;

/// Space that is left for everything but the body, in bytes: a dozen header fields take 2 kB.
const ENVELOPE_MAX: u64 = 16 << 10;

/// Maximum size of a body that a function can answer, in bytes. Every body is sent as base64, which
/// makes four bytes of three.
pub const INLINE_MAX: u64 = (PAYLOAD_MAX - ENVELOPE_MAX) / 4 * 3;

/// A complete answer. Its body is always sent as base64. The library would send JSON as text, whose
/// size after escaping depends on the number of quotes, and would alter a range that begins inside
/// a character. With a quote in every fourth byte, text would save little for catalogs.
#[derive(Debug)]
pub(crate) struct FunctionAnswer(pub(crate) Response<Vec<u8>>);

impl FunctionAnswer {
    /// Reads a response to its end. A response that is cut off becomes a 503, because nothing has
    /// been sent yet. The cause was logged where it happened.
    pub(crate) async fn collect(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let limit = usize::try_from(INLINE_MAX).unwrap_or(usize::MAX);
        match Limited::new(body, limit).collect().await {
            Ok(body) => Self(Response::from_parts(head, body.to_bytes().into())),
            Err(error) => {
                tracing::debug!(
                    error = error.as_ref(),
                    "answered 503 for a body that was cut off or too large"
                );
                Self(unavailable())
            }
        }
    }
}

impl IntoResponse for FunctionAnswer {
    fn into_response(self) -> Pin<Box<dyn Future<Output = Response<lambda_http::Body>> + Send>> {
        let encoded = self.0.map(|body| {
            if body.is_empty() {
                lambda_http::Body::Empty
            } else {
                lambda_http::Body::Binary(body)
            }
        });
        Box::pin(ready(encoded))
    }
}

fn unavailable() -> Response<Vec<u8>> {
    let body = b"{\"title\":\"Service Unavailable\",\"status\":503}\n".to_vec();
    Response::builder()
        .status(StatusCode::SERVICE_UNAVAILABLE)
        .header(header::CONTENT_TYPE, "application/problem+json")
        .header(header::CONTENT_LENGTH, body.len())
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::RETRY_AFTER, "5")
        .body(body)
        .expect("all fields are visible ASCII")
}

/// Lifetime of a URL: the time to begin a download, since one that has begun goes on after it. The
/// credentials that sign it live for hours. Caches repeat a redirect for a minute, so the oldest
/// one leaves 14. The URL is not a secret: all users of the mirror may read the object.
const EXPIRES: Duration = Duration::from_secs(15 * 60);

/// Finds presigned URLs of objects in a private bucket, which the credentials of the store sign.
#[derive(Debug, Clone)]
pub(crate) struct Presigned(pub(crate) S3Store);

#[async_trait]
impl Locate for Presigned {
    async fn locate(&self, key: &Key) -> Result<String, Box<dyn Error + Send + Sync>> {
        Ok(self.0.presign(key, EXPIRES).await?)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    async fn collected(chunks: Vec<Result<Vec<u8>, &'static str>>) -> FunctionAnswer {
        FunctionAnswer::collect(Response::new(Body::from_stream(stream::iter(chunks)))).await
    }

    #[tokio::test]
    async fn collect_turns_a_cut_off_body_into_503() {
        let answer = collected(vec![Ok(b"{}".to_vec()), Err("gone")]).await;
        assert_eq!(answer.0.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            answer.0.headers()[header::CONTENT_LENGTH],
            answer.0.body().len().to_string()
        );
    }

    #[tokio::test]
    async fn collect_refuses_bodies_above_the_limit() {
        let limit = usize::try_from(INLINE_MAX).unwrap();
        let whole = collected(vec![Ok(vec![b'x'; limit])]).await;
        assert_eq!(
            (whole.0.status(), whole.0.body().len()),
            (StatusCode::OK, limit)
        );
        let more = collected(vec![Ok(vec![b'x'; limit]), Ok(vec![b'x'])]).await;
        assert_eq!(more.0.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
