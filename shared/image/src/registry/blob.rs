//! Layers: large, streamed, resumed where they broke off, verified as a whole.

use bytes::Bytes;
use reqwest::header::CONTENT_RANGE;
use reqwest::{Method, Response, StatusCode};
use tokio::sync::mpsc::Sender;

use crate::error::Error;
use crate::manifest::Blob;
use crate::place::{Check, Fetched};
use crate::registry::exchange::Ask;
use crate::registry::pace::Paced;
use crate::registry::waits::Waits;
use crate::registry::{Fault, Session};

/// Progress that earns a fresh set of retries. Less would let a stream of drips go on for ever.
const PROGRESS_BYTES: u64 = 1 << 20;

impl Session {
    /// Streams the blob into `to`.
    pub(crate) async fn stream(&self, blob: &Blob, to: Sender<Bytes>) -> Result<Fetched, Error> {
        let mut check = Check::new("layer", blob);
        let mut waits = Waits::new(&self.settings().retry);
        let mut mark = 0;
        while !check.is_complete() {
            // What could not be sent was tried often enough. Only what breaks on the way is asked for again here.
            let response = self.rest(blob, check.seen()).await?;
            match self.part(response, blob, &mut check, &to).await {
                Ok(Fetched::Unwanted) => return Ok(Fetched::Unwanted),
                Ok(Fetched::Verified) => {}
                Err(error) => {
                    if check.seen() >= mark + PROGRESS_BYTES {
                        mark = check.seen();
                        waits = Waits::new(&self.settings().retry);
                    }
                    self.pause(&mut waits, error).await?;
                }
            }
        }
        check.finish().map(|()| Fetched::Verified)
    }

    async fn rest(&self, blob: &Blob, from: u64) -> Result<Response, Error> {
        let what = format!("layer {}", blob.digest);
        let ask = Ask {
            method: Method::GET,
            path: format!("blobs/{}", blob.digest),
            accept: None,
            from,
            what: &what,
        };
        self.send(&ask).await
    }

    /// Streams from where the check is to the end, or to where the connection breaks.
    async fn part(
        &self,
        mut response: Response,
        blob: &Blob,
        check: &mut Check<'_>,
        to: &Sender<Bytes>,
    ) -> Result<Fetched, Error> {
        let mut skip = self.offset(&response, blob, check.seen())?;
        let mut paced = Paced::new(&self.settings().pace);
        while let Some(mut chunk) = self.chunk(&mut paced, &mut response).await? {
            self.count_bytes(chunk.len());
            let skipped = chunk.len().min(usize::try_from(skip).unwrap_or(usize::MAX));
            skip -= skipped as u64;
            let fresh = chunk.split_off(skipped);
            check.update(&fresh)?;
            if !fresh.is_empty() && to.send(fresh).await.is_err() {
                return Ok(Fetched::Unwanted);
            }
        }
        if check.is_complete() {
            return Ok(Fetched::Verified);
        }
        Err(self.failed(Fault::Cut {
            got: check.seen(),
            want: blob.size,
        }))
    }

    /// How many bytes of the answer are known already: none of a partial one, all up to `from` of a whole one.
    fn offset(&self, response: &Response, blob: &Blob, from: u64) -> Result<u64, Error> {
        if response.status() == StatusCode::PARTIAL_CONTENT {
            let range = response
                .headers()
                .get(CONTENT_RANGE)
                .and_then(|value| value.to_str().ok());
            let starts = range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")));
            return if starts { Ok(0) } else { Err(self.failed(Fault::Range)) };
        }
        match response.content_length() {
            Some(actual) if actual > blob.size => Err(Error::Size {
                what: "layer",
                digest: blob.digest.clone(),
                declared: blob.size,
                actual,
            }),
            _ => Ok(from),
        }
    }
}
