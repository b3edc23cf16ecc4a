use std::time::Duration;

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use http::Method;
use http_body_util::LengthLimitError;

use crate::error::ApiError;

/// Maximum size of a request's content, in bytes, as in catalogd. Ten of the longest queries fit.
pub const CONTENT_MAX: usize = 1 << 20;

/// Maximum time from the head of a request to the end of its content, as for the head itself.
const CONTENT_TIME: Duration = Duration::from_secs(10);

/// Methods that a route answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedMethods {
    /// GET and HEAD.
    Read,
    /// Also POST, with content.
    ReadAndPost,
}

impl AllowedMethods {
    /// Returns the value of `Allow` (RFC 9110, section 10.2.1).
    pub const fn field(self) -> &'static str {
        match self {
            Self::Read => "GET, HEAD",
            Self::ReadAndPost => "GET, HEAD, POST",
        }
    }

    /// Returns the start of a sentence about the methods.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Read => "GET and HEAD are",
            Self::ReadAndPost => "GET, HEAD and POST are",
        }
    }

    pub(crate) fn has(self, method: &Method) -> bool {
        matches!(*method, Method::GET | Method::HEAD) || (self == Self::ReadAndPost && *method == Method::POST)
    }
}

/// Reads the content of a request within the limits of size and time.
pub(crate) async fn read(body: Body) -> Result<Bytes, ApiError> {
    // The announced size comes first: a client that waits for `100 Continue` then sends nothing.
    if http_body::Body::size_hint(&body).lower() > CONTENT_MAX as u64 {
        return Err(ApiError::ContentTooLarge(CONTENT_MAX));
    }
    match tokio::time::timeout(CONTENT_TIME, to_bytes(body, CONTENT_MAX)).await {
        Ok(Ok(content)) => Ok(content),
        Ok(Err(error)) if is_too_large(&error) => Err(ApiError::ContentTooLarge(CONTENT_MAX)),
        Ok(Err(_)) | Err(_) => Err(ApiError::ContentMissing),
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(<dyn std::error::Error>::is::<LengthLimitError>)
}
