use std::time::Duration;

use aws_sdk_s3::{
    error::{ProvideErrorMetadata, SdkError},
    operation::put_object::PutObjectOutput,
};
use bytes::Bytes;
use layout::Key;
use store::{Condition, Operation, StoreError, Version};

use crate::{
    S3Store,
    attempts::Attempts,
    fault::{self, Meaning},
    probe::Conditions,
    read::Lacking,
    staged::Source,
};

/// How often a write starts again after a 409: each time somebody else was at it in the same moment, and a publisher
/// that keeps losing has to look at what the others wrote.
const RACES: u32 = 4;

/// The longest wait after the first race; it doubles with every further one.
const RACE_WAIT: Duration = Duration::from_millis(100);

/// How one write ended that did not succeed.
pub(crate) enum Unwritten {
    /// The condition did not hold. If `repeated`, that may be because an earlier attempt of the same write succeeded
    /// and its answer got lost.
    Refused {
        repeated: bool,
    },
    /// Another write was under way.
    Raced {
        repeated: bool,
    },
    Failed(StoreError),
}

impl Unwritten {
    pub(crate) fn new<E>(key: &Key, condition: &Condition, attempts: &Attempts, error: SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let repeated = attempts.repeated();
        match (fault::meaning(&error), condition) {
            (Meaning::Refused, Condition::CreateOnly)
            | (Meaning::Refused | Meaning::Missing, Condition::Replace(_)) => Self::Refused { repeated },
            (Meaning::Raced, _) => Self::Raced { repeated },
            _ => Self::Failed(fault::failed(Operation::Put, key, error)),
        }
    }
}

impl From<StoreError> for Unwritten {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// The fields `If-None-Match` and `If-Match` of a condition.
pub(crate) fn fields(condition: &Condition) -> (Option<String>, Option<String>) {
    match condition {
        Condition::Always => (None, None),
        Condition::CreateOnly => (Some("*".to_owned()), None),
        Condition::Replace(version) => (None, Some(version.0.clone())),
    }
}

impl S3Store {
    pub(crate) async fn write(&self, key: &Key, source: &Source, condition: &Condition) -> Result<Version, StoreError> {
        if *condition == Condition::Always || self.conditions().await? == Conditions::Honoured {
            return self.write_if(key, source, condition).await;
        }
        let _writing = self.lock_writes().await;
        self.look(key, condition).await?;
        self.write_if(key, source, &Condition::Always).await
    }

    /// What a conditional write would have found, for an endpoint that has none.
    async fn look(&self, key: &Key, condition: &Condition) -> Result<(), StoreError> {
        let found = match self.info(key).await {
            Ok(info) => Some(info.version),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let holds = match (condition, found) {
            (Condition::Always, _) | (Condition::CreateOnly, None) => true,
            (Condition::CreateOnly, Some(_)) | (Condition::Replace(_), None) => false,
            (Condition::Replace(version), Some(found)) => *version == found,
        };
        if holds { Ok(()) } else { Err(StoreError::conflict(key)) }
    }

    async fn write_if(&self, key: &Key, source: &Source, condition: &Condition) -> Result<Version, StoreError> {
        let mut lost_answer = false;
        for race in 0..RACES {
            match self.send(key, source, condition).await {
                Ok(version) => return Ok(version),
                Err(Unwritten::Failed(error)) => return Err(error),
                Err(Unwritten::Refused { repeated }) if repeated || lost_answer => {
                    return self.find_own(key, source).await;
                }
                Err(Unwritten::Refused { .. }) => break,
                Err(Unwritten::Raced { repeated }) => lost_answer |= repeated,
            }
            tokio::time::sleep((RACE_WAIT * (1 << race)).mul_f64(rand::random())).await;
        }
        Err(StoreError::conflict(key))
    }

    /// Whether the object is the one that was to be written, which then was written by a lost attempt, or as well.
    async fn find_own(&self, key: &Key, source: &Source) -> Result<Version, StoreError> {
        let found = source.same_as(self, key).await?;
        found.ok_or_else(|| StoreError::conflict(key))
    }

    async fn send(&self, key: &Key, source: &Source, condition: &Condition) -> Result<Version, Unwritten> {
        if source.needs_parts() {
            return self.upload(key, source, condition).await;
        }
        let _memory = source.reserve(self.memory()).await;
        let bytes = source.read(0..source.size()).await;
        let bytes = bytes.map_err(|error| StoreError::failed(Operation::Put, key, error))?;
        self.put_object(key, bytes, condition).await
    }

    async fn put_object(&self, key: &Key, bytes: Bytes, condition: &Condition) -> Result<Version, Unwritten> {
        let attempts = Attempts::default();
        let (none_match, matches) = fields(condition);
        let request = self.client().put_object().bucket(&self.place().bucket);
        let request = request.key(self.place().name(&key.to_string())).body(bytes.into());
        let request = request.content_type(key.content_type());
        let request = request.set_content_encoding(key.content_encoding().map(Into::into));
        let request = request.cache_control(key.cache_policy().cache_control());
        let request = request.set_if_none_match(none_match).set_if_match(matches);
        match request.customize().interceptor(attempts.clone()).send().await {
            Ok(PutObjectOutput { e_tag: Some(tag), .. }) => Ok(Version(tag)),
            Ok(_) => Err(StoreError::failed(Operation::Put, key, Lacking("ETag")).into()),
            Err(error) => Err(Unwritten::new(key, condition, &attempts, error)),
        }
    }
}
