//! Bodies, taken up again where they broke off.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use layout::Key;
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_RANGE, ETAG},
};

use super::{Ask, HttpError, HttpOrigin, waits::Waits};
use crate::{Body, OriginError};

/// Progress that earns a fresh set of attempts. Less would let a stream of drips go on for ever.
const PROGRESS_BYTES: u64 = 1 << 20;

/// A body that is being read.
struct Reading {
    origin: HttpOrigin,
    key: Key,
    max: u64,
    response: Response,
    /// The entity tag of what is being read, if it is strong: only then do parts of two answers fit together for sure.
    tag: Option<String>,
    waits: Waits,
    seen: u64,
    /// Where the last fresh set of attempts was earned.
    mark: u64,
    /// Bytes of the present answer that were seen in an earlier one.
    skip: u64,
}

impl HttpOrigin {
    pub(super) fn body(&self, key: Key, max: u64, response: Response, waits: Waits) -> Body {
        let tag = strong_tag(&response);
        let reading = Reading {
            origin: self.clone(),
            key,
            max,
            response,
            tag,
            waits,
            seen: 0,
            mark: 0,
            skip: 0,
        };
        stream::try_unfold(reading, Reading::next).boxed()
    }
}

impl Reading {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, OriginError> {
        if self.response.content_length().is_some_and(|length| length > self.max) {
            return Err(OriginError::too_large(&self.key, self.max));
        }
        loop {
            match self.response.chunk().await {
                Ok(None) => return Ok(None),
                Ok(Some(chunk)) => {
                    if let Some(chunk) = self.fresh(chunk)? {
                        return Ok(Some((chunk, self)));
                    }
                }
                Err(error) => self.resume(HttpError::of(error)).await?,
            }
        }
    }

    /// What of a chunk was not seen before.
    fn fresh(&mut self, mut chunk: Bytes) -> Result<Option<Bytes>, OriginError> {
        let skipped = chunk.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        self.skip -= skipped as u64;
        let chunk = chunk.split_off(skipped);
        self.seen += chunk.len() as u64;
        if self.seen > self.max {
            return Err(OriginError::too_large(&self.key, self.max));
        }
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }

    async fn resume(&mut self, error: HttpError) -> Result<(), OriginError> {
        if self.seen >= self.mark + PROGRESS_BYTES {
            self.mark = self.seen;
            self.waits = self.origin.waits();
        }
        self.waits.pause(&self.key, error).await?;
        let ask = Ask {
            from: self.seen,
            same: self.tag.as_deref(),
            ..Ask::default()
        };
        let response = self.origin.send(&self.key, &ask, &mut self.waits).await?;
        self.skip = skip(&response, self.seen).map_err(|error| error.at(&self.key))?;
        self.response = response;
        Ok(())
    }
}

/// How many bytes of the answer are known already: none of a partial one, all up to `seen` of a whole one.
fn skip(response: &Response, seen: u64) -> Result<u64, HttpError> {
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return Ok(seen);
    }
    let range = response
        .headers()
        .get(CONTENT_RANGE)
        .and_then(|value| value.to_str().ok());
    let starts = range.is_some_and(|range| range.starts_with(&format!("bytes {seen}-")));
    if starts { Ok(0) } else { Err(HttpError::Range) }
}

/// A weak tag does not promise equal bytes, and `If-Range` must not carry one (RFC 9110, section 13.1.5).
fn strong_tag(response: &Response) -> Option<String> {
    let tag = response.headers().get(ETAG)?.to_str().ok()?;
    tag.starts_with('"').then(|| tag.to_owned())
}
