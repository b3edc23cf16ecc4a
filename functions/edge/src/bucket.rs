//! An R2 bucket as a store that can only be read.

use std::future::ready;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt, stream};
use model::Key;
use store::{Body, Fetched, Get, Object, ObjectInfo, Operation, ReadStore, StoreError, Version};
use worker::send::{SendFuture, SendWrapper};
use worker::{Bucket, ByteStream, Conditional, Delay, Range};

/// Maximum size of a body that is read at once, in bytes: a stream costs a call of JavaScript for
/// each chunk.
pub(crate) const WHOLE_MAX: u64 = 1 << 20;

/// Time after which an answer of the bucket counts as failed, as in the reader function: a client
/// waits for it.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Objects below a prefix of a bucket.
#[derive(Debug)]
pub(crate) struct R2Store {
    pub(crate) bucket: SendWrapper<Bucket>,
    /// Prefix of every key, with a slash at its end unless it is empty.
    pub(crate) prefix: String,
}

impl R2Store {
    fn name(&self, key: &Key) -> String {
        format!("{}{key}", self.prefix)
    }

    async fn fetch(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        let mut request = self.bucket.get(self.name(key));
        if let Some(Version(etag)) = &get.unless {
            request = request.only_if(Conditional {
                etag_does_not_match: Some(etag.clone()),
                ..Conditional::default()
            });
        }
        if let Some(range) = &get.range {
            request = request.range(Range::OffsetWithLength {
                offset: range.start,
                length: range.end.saturating_sub(range.start).max(1),
            });
        }
        let found = match in_time(request.execute(), key).await {
            // The bucket says nothing but that it refuses the range.
            Err(error) if get.range.is_some() => {
                let Some(whole) = self.head(key).await? else {
                    return Err(StoreError::not_found(key));
                };
                get.resolve(whole.size, key)?;
                return Err(error);
            }
            found => found?.ok_or_else(|| StoreError::not_found(key))?,
        };
        let info = object_info(&found);
        let Some(body) = found.body() else {
            return Ok(Fetched::NotModified);
        };
        let range = get.resolve(info.size, key)?;
        let body: Body = if range.end - range.start <= WHOLE_MAX {
            let bytes = in_time(body.bytes(), key).await?;
            stream::once(ready(Ok(bytes.into()))).boxed()
        } else {
            streamed(body.stream().map_err(|error| failed(key, &error))?, key)
        };
        Ok(Fetched::Object(Object { info, body }))
    }
}

fn object_info(found: &worker::Object) -> ObjectInfo {
    ObjectInfo {
        size: found.size(),
        version: Version(found.etag()),
        modified: UNIX_EPOCH + Duration::from_millis(found.uploaded().as_millis()),
    }
}

/// Rest of an object's content.
struct Rest {
    chunks: ByteStream,
    key: Key,
}

fn streamed(chunks: ByteStream, key: &Key) -> Body {
    let rest = Rest {
        chunks,
        key: key.clone(),
    };
    stream::unfold(SendWrapper(rest), |rest| SendFuture::new(next_chunk(rest))).boxed()
}

async fn next_chunk(
    mut rest: SendWrapper<Rest>,
) -> Option<(Result<Bytes, StoreError>, SendWrapper<Rest>)> {
    let next = rest.0.chunks.next().map(Option::transpose);
    let chunk = match in_time(next, &rest.0.key).await {
        Ok(chunk) => Ok(Bytes::from(chunk?)),
        Err(error) => Err(error),
    };
    Some((chunk, rest))
}

async fn in_time<T>(
    answer: impl Future<Output = worker::Result<T>>,
    key: &Key,
) -> Result<T, StoreError> {
    match select(Box::pin(answer), Delay::from(TIMEOUT)).await {
        Either::Left((answer, _)) => answer.map_err(|error| failed(key, &error)),
        Either::Right(_) => Err(failed(key, &"the bucket did not answer in time")),
    }
}

fn failed(key: &Key, error: &impl ToString) -> StoreError {
    StoreError::failed(Operation::Get, key, error.to_string())
}

#[async_trait]
impl ReadStore for R2Store {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        SendFuture::new(self.fetch(key, get)).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        let found = SendFuture::new(in_time(self.bucket.head(self.name(key)), key)).await?;
        Ok(found.map(|found| object_info(&found)))
    }
}
