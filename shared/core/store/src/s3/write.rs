use std::time::Duration;

use crate::{Condition, Object, Operation, StoreError, StoreExt as _, Version, integrity::hash};
use aws_sdk_s3::config;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_types::base64;
use model::{Key, Sha256};

use crate::s3::attempts::Exchange;
use crate::s3::fault::{self, Meaning};
use crate::s3::read::lacking;
use crate::s3::staged::ObjectBytes;
use crate::s3::{S3Settings, S3Store};

/// Maximum number of attempts of a write that meets another one (409). A writer that keeps losing
/// has to look at what the others wrote.
const RACES: u32 = 4;

/// Longest wait after the first race. It doubles with every further one.
const RACE_WAIT: Duration = Duration::from_millis(100);

/// Maximum size of an object in bytes: that of one PutObject (Amazon S3 User Guide, "Uploading
/// objects").
const OBJECT_MAX: u64 = 5 << 30;

/// Throughput below which a put of an immutable object is given up, in bytes per second. That is 5
/// Mbit/s. 200 MB may take five minutes, a small part of the hour that a publication has.
const MIN_THROUGHPUT: u64 = 625_000;

/// Object that is to be written.
struct NewObject<'a> {
    key: &'a Key,
    bytes: &'a ObjectBytes,
    sha256: Sha256,
}

impl<'a> NewObject<'a> {
    async fn new(key: &'a Key, bytes: &'a ObjectBytes) -> Result<Self, StoreError> {
        let size = bytes.size();
        if size > OBJECT_MAX {
            let what = format!(
                "the object has {size} bytes, and S3 takes at most {OBJECT_MAX} (5 GiB) in one request"
            );
            return Err(StoreError::failed(Operation::Put, key, what));
        }
        let sha256 = bytes
            .sha256(key)
            .await
            .map_err(|error| StoreError::failed(Operation::Put, key, error))?;
        Ok(Self { key, bytes, sha256 })
    }

    /// Returns the time limits of its put. The commit of a pointer keeps the limits of the
    /// settings: a later one could land after collection has counted on its absence.
    fn timeouts(&self, settings: &S3Settings) -> TimeoutConfig {
        match self.key {
            Key::Object(..) => settings.put_timeouts(self.bytes.size()),
            _ => settings.put_timeouts(0),
        }
    }
}

impl S3Settings {
    /// Returns the time limits of a put of this many bytes. A body in memory is handed to the
    /// connection at once, so the limit on stalls does not see it.
    pub fn put_timeouts(&self, bytes: u64) -> TimeoutConfig {
        let sending = Duration::from_secs(bytes / MIN_THROUGHPUT);
        TimeoutConfig::builder()
            .operation_attempt_timeout(self.attempt_timeout + sending)
            // Two attempts of full length, as in the default settings.
            .operation_timeout(self.total_timeout + 2 * sending)
            .build()
    }
}

impl S3Store {
    pub(crate) async fn write(
        &self,
        key: &Key,
        bytes: &ObjectBytes,
        condition: &Condition,
    ) -> Result<Version, StoreError> {
        let object = NewObject::new(key, bytes).await?;
        if *condition != Condition::Always {
            self.check_writes().await?;
        }
        let timeouts = object.timeouts(&self.bucket.settings);
        let mut lost_answer = false;
        for race in 0..RACES {
            let exchange = Exchange::signing(object.sha256);
            let sent = self
                .put_request(&object, condition)
                .customize()
                .config_override(config::Config::builder().timeout_config(timeouts.clone()))
                .interceptor(exchange.clone())
                .send()
                .await;
            let error = match sent {
                Ok(written) => {
                    let tag = written.e_tag;
                    let tag = tag.ok_or_else(|| lacking(Operation::Put, key, "ETag"))?;
                    return Ok(Version(tag));
                }
                Err(error) => error,
            };
            // An earlier attempt of the same write may have succeeded and its answer may be lost.
            lost_answer |= exchange.is_repeated();

            let meaning = fault::meaning(&error);
            let is_refused = match condition {
                Condition::Always => false,
                Condition::CreateOnly => meaning == Meaning::Refused,
                Condition::Replace(_) => matches!(meaning, Meaning::Refused | Meaning::Missing),
            };
            if is_refused && lost_answer {
                return self.find_own(&object).await;
            }
            if is_refused {
                return Err(StoreError::conflict(key));
            }
            if meaning != Meaning::Raced {
                return Err(fault::failed(Operation::Put, key, error));
            }
            // Another write was under way at the same time.
            let wait = RACE_WAIT * (1 << race);
            tokio::time::sleep(wait.mul_f64(rand::random())).await;
        }
        Err(StoreError::conflict(key))
    }

    /// Returns the version of the object if its bytes are those that were to be written. A lost
    /// attempt wrote them, or another writer wrote the same.
    ///
    /// The caller cannot tell these two apart, and need not: no state of a document comes back,
    /// because each has a serial or a counter that every write raises. So equal bytes mean that the
    /// swap which both wanted has happened, from the state that both had read. The last step of
    /// collection to `deleting`, done by two collectors, is one step.
    async fn find_own(&self, object: &NewObject<'_>) -> Result<Version, StoreError> {
        let Object { info, body } = match self.open(object.key, None).await {
            Err(error) if error.is_not_found() => return Err(StoreError::conflict(object.key)),
            found => found?,
        };
        if info.size == object.bytes.size() && hash(body).await? == object.sha256 {
            return Ok(info.version);
        }
        Err(StoreError::conflict(object.key))
    }

    fn put_request(&self, object: &NewObject<'_>, condition: &Condition) -> PutObjectFluentBuilder {
        let NewObject { key, bytes, sha256 } = object;
        let encoding = key.encoding().content_encoding();
        let request = self
            .bucket
            .client
            .put_object()
            .bucket(&self.bucket.place.bucket)
            .key(self.bucket.place.name(&key.to_string()))
            .body(ByteStream::new(bytes.body()))
            .content_length(bytes.size() as i64)
            // A server without checksums ignores this field as any other that it does not know.
            .checksum_sha256(base64::encode(sha256.as_bytes()))
            .content_type(key.content_type())
            .set_content_encoding(encoding.map(str::to_owned))
            .cache_control(key.cache_policy().cache_control());
        on_condition(request, condition)
    }
}

/// Adds the header field of a condition to a put.
pub(crate) fn on_condition(
    put: PutObjectFluentBuilder,
    condition: &Condition,
) -> PutObjectFluentBuilder {
    match condition {
        Condition::Always => put,
        Condition::CreateOnly => put.if_none_match("*"),
        Condition::Replace(version) => put.if_match(&version.0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::Kind;

    use super::*;

    const OBJECT: Key = Key::Object(Kind::Blob, Sha256::from_bytes([0; 32]));

    fn sized(size: u64) -> ObjectBytes {
        let file = Arc::new(tempfile::tempfile().unwrap());
        ObjectBytes::File { file, size }
    }

    #[tokio::test]
    async fn new_object_of_more_than_5_gib_fails() {
        NewObject::new(&OBJECT, &sized(5 << 30))
            .await
            .map(drop)
            .unwrap();
        let error = NewObject::new(&OBJECT, &sized((5 << 30) + 1))
            .await
            .map(drop)
            .unwrap_err();
        let reason = std::error::Error::source(&error).unwrap().to_string();
        assert!(
            reason.contains("5368709121 bytes") && reason.contains("5 GiB"),
            "{reason}"
        );
    }

    #[tokio::test]
    async fn timeouts_grow_with_an_immutable_object_only() {
        let settings = S3Settings::default();
        let bytes = sized(625_000_000);
        let limits = NewObject::new(&OBJECT, &bytes)
            .await
            .unwrap()
            .timeouts(&settings);
        assert_eq!(
            limits.operation_attempt_timeout(),
            Some(Duration::from_secs(1_030))
        );
        assert_eq!(limits.operation_timeout(), Some(Duration::from_secs(2_060)));

        let bytes = ObjectBytes::Memory(vec![0; 1_250_000].into());
        let limits = NewObject::new(&Key::Gc, &bytes)
            .await
            .unwrap()
            .timeouts(&settings);
        assert_eq!(
            limits.operation_attempt_timeout(),
            Some(Duration::from_secs(30))
        );
        assert_eq!(limits.operation_timeout(), Some(Duration::from_secs(60)));
    }
}
