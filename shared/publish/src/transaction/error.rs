use model::DocumentError;
use store::{ObjectError, ReadError, StoreError};

use super::RetryableError;

/// Failure of a publication. What was published before stays served.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The store cannot be read, or holds a document that is not valid.
    #[error("cannot read what is published")]
    Read(#[from] ReadError),
    /// The store cannot be written, or another writer published first.
    #[error("cannot publish the catalog")]
    Store(#[from] StoreError),
    /// A published object is missing, or its bytes do not hash to its key.
    #[error("{0} is missing or damaged and has to be written again")]
    Damaged(String),
    /// Garbage collection is deleting an object that the publication needs.
    #[error("deferred: garbage collection is deleting {0}; the next poll tries again, at the latest in two hours")]
    Deferred(String),
    /// Too much time has passed since `gc.json` was read, so the objects may have been condemned.
    #[error("the publication took more than an hour and has to start again")]
    Expired,
    /// The store did not answer the commit in time. It may still happen.
    #[error("the store did not answer the commit within {} s", super::COMMIT_TIMEOUT.as_secs())]
    CommitTimeout,
    /// Readers that verify would not accept an unsigned pointer after a signed one.
    #[error(
        "what is published is signed, and there is no key to sign what follows: give the signing key, \
         or force the poll to publish it unsigned"
    )]
    NoKey,
    /// The bytes of a document cannot be made.
    #[error("cannot compress a document")]
    Compress(#[source] std::io::Error),
}

impl PublishError {
    /// True if a published object has to be written again.
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_))
    }

    pub(crate) fn unreadable(key: &model::Key, source: DocumentError) -> Self {
        Self::Read(ReadError::Document {
            key: key.to_string(),
            source,
        })
    }
}

impl RetryableError for PublishError {
    fn is_race(&self) -> bool {
        match self {
            Self::Store(error) | Self::Read(ReadError::Store(error)) => error.is_conflict(),
            // No other writer took part in these, but a new attempt reads everything again, which is what they need.
            Self::Damaged(_) | Self::Expired | Self::CommitTimeout => true,
            // A deferred publication would have to wait for up to two hours; the next poll is the better retry.
            Self::Read(_) | Self::Deferred(_) | Self::NoKey | Self::Compress(_) => false,
        }
    }
}

impl From<ObjectError> for PublishError {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Read(error) => Self::Read(error),
            ObjectError::Damaged { key, .. } => Self::Damaged(key),
        }
    }
}
