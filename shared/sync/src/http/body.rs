//! Bodies of objects, continued where the connection broke.

use bytes::Bytes;
use fetch::{FailedFetch, FetchResponse, ResumableBody, Retries};
use futures_util::{StreamExt, stream};
use model::Key;

use super::HttpOrigin;
use crate::{OriginBody, OriginError};

/// An object whose body is being read.
struct ObjectBody {
    origin: HttpOrigin,
    key: Key,
    /// Maximum size of the body, in bytes.
    max: u64,
    body: ResumableBody,
    retries: Retries,
}

impl HttpOrigin {
    /// Returns the body of an answer as a stream.
    pub(super) fn stream(&self, key: Key, max: u64, response: FetchResponse, retries: Retries) -> OriginBody {
        let object = ObjectBody {
            origin: self.clone(),
            key,
            max,
            body: response.into_resumable(),
            retries,
        };
        stream::try_unfold(object, ObjectBody::next).boxed()
    }
}

impl ObjectBody {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, OriginError> {
        // A declared length above the maximum is refused before any of it is read.
        if self.body.content_length().is_some_and(|length| length > self.max) {
            return Err(OriginError::too_large(&self.key, self.max));
        }
        loop {
            match self.body.chunk().await {
                Ok(None) => return Ok(None),
                Ok(Some(_)) if self.body.position() > self.max => {
                    return Err(OriginError::too_large(&self.key, self.max));
                }
                Ok(Some(chunk)) => return Ok(Some((chunk, self))),
                Err(failed) => self.resume(failed).await?,
            }
        }
    }

    async fn resume(&mut self, error: FailedFetch) -> Result<(), OriginError> {
        // Progress earns fresh retries, so that a large object over a poor connection arrives in the end.
        if self.body.earns_retries() {
            self.retries = self.origin.retries();
        }
        self.retries.pause(OriginError::fetch(&self.key, error)).await?;
        let request = self.body.request_rest(self.origin.request.clone());
        let (origin, key) = (&self.origin, &self.key);
        let response = self.retries.run(|| origin.attempt(key, &request)).await?;
        let continued = self.body.continue_with(response);
        continued.map_err(|failed| OriginError::fetch(&self.key, failed))
    }
}
