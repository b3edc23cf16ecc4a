use std::ops::Range;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::operation::get_object::builders::GetObjectFluentBuilder;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::{ByteStream, DateTime};
use futures_util::{StreamExt as _, stream};
use model::Key;

use crate::s3::S3Store;
use crate::s3::attempts::Exchange;
use crate::s3::fault::{self, Meaning};
use crate::{Body, Fetched, Get, Object, ObjectInfo, Operation, ReadStore, StoreError, Version};

/// Returns the error for an answer without a header field that this crate needs.
pub(crate) fn lacking(operation: Operation, key: &Key, field: &str) -> StoreError {
    StoreError::failed(operation, key, format!("the answer has no usable {field}"))
}

#[async_trait]
impl ReadStore for S3Store {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        let sent = self
            .get_request(key)
            .set_range(get.range.as_ref().map(header))
            .set_if_none_match(get.unless.map(|version| version.0))
            .send()
            .await;
        let output = match sent {
            Ok(output) => output,
            Err(error) => return self.unread(key, error).await,
        };
        let size = match get.range {
            Some(_) => output.content_range().and_then(whole_size),
            None => number(output.content_length()),
        };
        let info = info(key, size, output.e_tag, output.last_modified.as_ref())?;
        let body = body(key.clone(), output.body);
        Ok(Fetched::Object(Object { info, body }))
    }

    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        self.look_at(key, &Exchange::default()).await
    }
}

impl S3Store {
    fn get_request(&self, key: &Key) -> GetObjectFluentBuilder {
        self.bucket
            .client
            .get_object()
            .bucket(&self.bucket.place.bucket)
            .key(self.bucket.place.name(&key.to_string()))
    }

    async fn unread(
        &self,
        key: &Key,
        error: SdkError<GetObjectError>,
    ) -> Result<Fetched, StoreError> {
        match fault::meaning(&error) {
            Meaning::Unchanged => Ok(Fetched::NotModified),
            Meaning::Missing => Err(StoreError::not_found(key)),
            Meaning::OutOfRange => {
                let answer = error.raw_response();
                let range = answer.and_then(|answer| answer.headers().get("content-range"));
                if let Some(size) = range.and_then(whole_size) {
                    return Err(StoreError::range_not_satisfiable(key, size));
                }
                match self.head(key).await? {
                    Some(info) => Err(StoreError::range_not_satisfiable(key, info.size)),
                    None => Err(StoreError::not_found(key)),
                }
            }
            _ => Err(fault::failed(Operation::Get, key, error)),
        }
    }

    /// Looks at an object. Returns `None` if it is missing.
    pub(crate) async fn look_at(
        &self,
        key: &Key,
        exchange: &Exchange,
    ) -> Result<Option<ObjectInfo>, StoreError> {
        let sent = self
            .bucket
            .client
            .head_object()
            .bucket(&self.bucket.place.bucket)
            .key(self.bucket.place.name(&key.to_string()))
            .customize()
            .interceptor(exchange.clone())
            .send()
            .await;
        match sent {
            Ok(output) => {
                let size = number(output.content_length());
                info(key, size, output.e_tag, output.last_modified.as_ref()).map(Some)
            }
            Err(error) if fault::meaning(&error) == Meaning::Missing => Ok(None),
            Err(error) => Err(fault::failed(Operation::Get, key, error)),
        }
    }

    /// Returns a URL from which any client can read an object for `expires`, at most a week. It is
    /// made without a request, so a missing object shows only when the URL is used.
    ///
    /// # Errors
    /// [`StoreError::Failed`] without credentials or region, or when `expires` is too long.
    pub async fn presign(&self, key: &Key, expires: Duration) -> Result<String, StoreError> {
        let config = PresigningConfig::expires_in(expires)
            .map_err(|error| StoreError::failed(Operation::Get, key, error))?;
        let request = self
            .get_request(key)
            .presigned(config)
            .await
            .map_err(|error| fault::failed(Operation::Get, key, error))?;
        Ok(request.uri().to_owned())
    }
}

/// Returns a `Range` field value (RFC 9110, section 14.2). Servers read its numbers as signed ones,
/// so a larger end is left out.
fn header(range: &Range<u64>) -> String {
    let last = range.end - 1;
    if i64::try_from(last).is_ok() {
        format!("bytes={}-{last}", range.start)
    } else {
        format!("bytes={}-", range.start)
    }
}

fn info(
    key: &Key,
    size: Option<u64>,
    tag: Option<String>,
    modified: Option<&DateTime>,
) -> Result<ObjectInfo, StoreError> {
    let size = size.ok_or_else(|| lacking(Operation::Get, key, "size"))?;
    let tag = tag.ok_or_else(|| lacking(Operation::Get, key, "ETag"))?;
    Ok(ObjectInfo {
        size,
        version: Version(tag),
        modified: time(modified),
    })
}

fn number(length: Option<i64>) -> Option<u64> {
    length?.try_into().ok()
}

/// Returns the size in `bytes 0-9/100` or `bytes */100` (RFC 9110, section 14.4).
fn whole_size(content_range: &str) -> Option<u64> {
    content_range.rsplit_once('/')?.1.parse().ok()
}

/// Returns the time of an object. One without a time counts as just written, so that collection
/// waits for it longest.
pub(crate) fn time(modified: Option<&DateTime>) -> SystemTime {
    let modified = modified.and_then(|time| SystemTime::try_from(*time).ok());
    modified.unwrap_or_else(SystemTime::now)
}

/// Returns the bytes of an answer. The SDK compares them with the checksum in the answer, if there
/// is one, and the HTTP client their number with the announced one.
fn body(key: Key, stream: ByteStream) -> Body {
    stream::try_unfold((key, stream), async |(key, mut stream)| {
        match stream.next().await {
            Some(Ok(chunk)) => Ok(Some((chunk, (key, stream)))),
            Some(Err(error)) => Err(StoreError::failed(Operation::Get, &key, error)),
            None => Ok(None),
        }
    })
    .boxed()
}
