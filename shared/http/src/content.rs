use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::Method;
use http_body_util::BodyExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::error::ApiError;

/// Maximum size of a request's content, in bytes, as in catalogd. Ten of the longest queries fit.
pub const CONTENT_MAX: usize = 1 << 20;

/// Maximum size of the contents of all requests at a time, in bytes. Real queries have a few hundred bytes.
const CONTENTS_MAX: usize = 32 << 20;

/// Maximum time from the head of a request to the end of its content, as for the head itself.
const CONTENT_TIME: Duration = Duration::from_secs(10);

/// Methods that a route answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedMethods {
    /// GET and HEAD.
    Read,
    /// Also POST, with content.
    ReadAndPost,
}

impl AllowedMethods {
    /// Returns the value of `Allow` (RFC 9110, section 10.2.1).
    pub(crate) const fn field(self) -> &'static str {
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

/// Memory for the contents of all requests together: an HTTP/2 connection has a hundred of them at a time.
#[derive(Debug, Clone)]
pub(crate) struct ContentBudget(Arc<Semaphore>);

/// Content of a request, which counts against the budget until it is dropped.
#[derive(Debug)]
pub(crate) struct RequestContent {
    pub(crate) bytes: Bytes,
    _budget: Option<OwnedSemaphorePermit>,
}

impl Default for ContentBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CONTENTS_MAX)))
    }
}

impl ContentBudget {
    /// Reads the content of a request within the limits of size and time.
    pub(crate) async fn read(&self, body: Body) -> Result<RequestContent, ApiError> {
        // The announced size comes first: a client that waits for `100 Continue` then sends nothing.
        if http_body::Body::size_hint(&body).lower() > CONTENT_MAX as u64 {
            return Err(ApiError::ContentTooLarge(CONTENT_MAX));
        }
        let content = timeout(CONTENT_TIME, self.collect(body)).await;
        content.unwrap_or(Err(ApiError::ContentMissing))
    }

    async fn collect(&self, mut body: Body) -> Result<RequestContent, ApiError> {
        let (mut bytes, mut budget) = (BytesMut::new(), None::<OwnedSemaphorePermit>);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| ApiError::ContentMissing)?;
            // Trailers are not read.
            let Ok(chunk) = frame.into_data() else { continue };
            if bytes.len() + chunk.len() > CONTENT_MAX {
                return Err(ApiError::ContentTooLarge(CONTENT_MAX));
            }
            let length = u32::try_from(chunk.len()).map_err(|_| ApiError::ContentTooLarge(CONTENT_MAX))?;
            let more = Arc::clone(&self.0).try_acquire_many_owned(length);
            let more = more.map_err(|_| ApiError::TooManyQueries)?;
            match &mut budget {
                Some(budget) => budget.merge(more),
                None => budget = Some(more),
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(RequestContent {
            bytes: bytes.freeze(),
            _budget: budget,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn read_takes_no_more_than_all_contents_may_have() {
        let budget = ContentBudget::default();
        let body = || Body::from(vec![b' '; CONTENT_MAX]);
        let mut held = Vec::new();
        for _ in 0..CONTENTS_MAX / CONTENT_MAX {
            held.push(budget.read(body()).await.unwrap());
        }
        let refused = budget.read(Body::from("a")).await.unwrap_err();
        assert!(matches!(refused, ApiError::TooManyQueries), "{refused}");
        assert!(budget.read(Body::empty()).await.unwrap().bytes.is_empty());
        held.pop();
        assert_eq!(budget.read(body()).await.unwrap().bytes.len(), CONTENT_MAX);
    }
}
