//! Layers: large, streamed, continued where the connection broke, verified as a whole.

use bytes::Bytes;
use fetch::{FetchError, FetchResponse, ResumableBody};
use oci::{BlobRef, UnpackError};
use reqwest::{Method, StatusCode};
use tokio::sync::mpsc::Sender;

use crate::Error;
use crate::blob_source::{BlobCheck, wrong_size};
use crate::registry::Session;
use crate::registry::manifest::blob_request;

impl Session {
    /// Streams a layer into `to`, and continues where a connection broke. Verifies the whole at its end.
    pub(crate) async fn stream(&self, blob: &BlobRef, to: Sender<Bytes>) -> Result<(), Error> {
        let mut check = BlobCheck::new(blob);
        let retries = self.server.retries();
        if check.is_complete() {
            return check.finish();
        }
        let mut body = self.request_blob(blob, 0).await?.into_resumable(retries);
        loop {
            match self.copy(&mut body, blob, &mut check, &to).await {
                Ok(()) => return check.finish(),
                Err(error) => body.pause(error).await?,
            }
            // `send` has its own retries. Those of the body are for the breaks.
            let rest = self.request_blob(blob, body.position()).await?;
            self.server.fetched(body.continue_with(rest))?;
        }
    }

    async fn request_blob(&self, blob: &BlobRef, position: u64) -> Result<FetchResponse, Error> {
        let mut request = blob_request(Method::GET, "layer", &blob.digest);
        request.spec = request.spec.from_position(position);
        let response = self.send(&request).await?.expecting(blob.size - position);
        let is_partial = response.status() == StatusCode::PARTIAL_CONTENT;
        if is_partial && position == 0 {
            // Nothing asked for a part, so the rest could be missing.
            return Err(self.server.failed_at(&response, FetchError::Range));
        }
        match response.content_length() {
            Some(actual) if !is_partial && actual > blob.size => Err(wrong_size("layer", blob, actual)),
            _ => Ok(response),
        }
    }

    /// Copies to the end of the blob, or to where the connection breaks.
    async fn copy(
        &self,
        body: &mut ResumableBody,
        blob: &BlobRef,
        check: &mut BlobCheck<'_>,
        to: &Sender<Bytes>,
    ) -> Result<(), Error> {
        while let Some(chunk) = self.server.fetched(body.chunk().await)? {
            check.update(&chunk)?;
            to.send(chunk).await.map_err(|_| UnpackError::Abandoned)?;
        }
        if check.is_complete() {
            return Ok(());
        }
        Err(self.server.failed(FetchError::Truncated {
            received: body.position(),
            expected: blob.size,
        }))
    }
}
