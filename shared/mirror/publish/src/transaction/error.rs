use std::time::Duration;

use model::text::Chain;
use store::{ReadError, StoreError};

use crate::Env;

/// Longest wait for the answer to a commit. The hour of [`TRANSACTION_MAX`](super::TRANSACTION_MAX)
/// is checked just before the commit is sent.
pub(crate) const COMMIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Failure of a publication. What was published before stays served.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The store cannot be read, or holds a document that is not valid.
    #[error("cannot read what is published")]
    Read(#[source] ReadError),
    /// The store cannot be written, or another writer published first.
    #[error("cannot publish the catalog")]
    Store(#[from] StoreError),
    /// A published object is missing, or its bytes do not hash to its key.
    #[error("{0} is missing or damaged and has to be written again")]
    Damaged(String),
    /// Garbage collection is deleting an object that the publication needs.
    #[error(
        "deferred: garbage collection is deleting {0}; the next poll tries again, at the latest in two hours"
    )]
    Deferred(String),
    /// Too much time has passed since `gc.json` was read, so the objects may have been condemned.
    #[error("the publication took more than an hour and has to start again")]
    Expired,
    /// The store did not answer the commit in time. It may still happen.
    #[error("the store did not answer the commit within {} s", COMMIT_TIMEOUT.as_secs())]
    CommitTimeout,
    /// Readers that verify would not accept an unsigned pointer after a signed one.
    #[error(
        "what is published is signed, and there is no key to sign what follows: give the signing key, \
         or publish it unsigned with `poll --force`"
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
}

impl RetryableError for PublishError {
    fn is_race(&self) -> bool {
        match self {
            Self::Store(error) | Self::Read(ReadError::Store(error)) => error.is_conflict(),
            // No other writer took part in these, but a new attempt reads everything again, which
            // is what they need.
            Self::Damaged(_) | Self::Expired | Self::CommitTimeout => true,
            // A deferred publication would have to wait for up to two hours; the next poll is the
            // better retry.
            Self::Read(_) | Self::Deferred(_) | Self::NoKey | Self::Compress(_) => false,
        }
    }
}

impl From<ReadError> for PublishError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged { key, .. } => Self::Damaged(key),
            error => Self::Read(error),
        }
    }
}

/// First wait after a lost race. It doubles with each further one, which spreads two writers apart.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// Longest wait after a lost race: a publication takes seconds, so more would only be late.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// An error that may be a lost race.
pub trait RetryableError: std::error::Error + Send + Sync + 'static {
    /// True if starting again at once may help.
    fn is_race(&self) -> bool;
}

/// Bounded retries after lost races, with waits that grow and jitter. Hold no permit while you
/// wait.
#[derive(Debug)]
pub struct RaceRetries<'a> {
    env: &'a Env,
    attempt: u32,
    attempts: u32,
}

impl<'a> RaceRetries<'a> {
    /// Allows `attempts` in all, at least one.
    pub const fn new(env: &'a Env, attempts: u32) -> Self {
        Self {
            env,
            attempt: 1,
            attempts,
        }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The error itself, without a wait, if it is not a race or no attempt is left.
    pub async fn again<E: RetryableError>(&mut self, error: E) -> Result<(), E> {
        // Errors that would come back at once, such as missing permissions, are not repeated.
        if !error.is_race() || self.attempt >= self.attempts {
            return Err(error);
        }
        let attempt = self.attempt;
        tracing::info!(
            attempt,
            error = %Chain(&error),
            "starting again after a lost race"
        );
        let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(attempt - 1));
        self.attempt += 1;
        tokio::time::sleep(self.env.jittered(wait.min(WAIT_MAX))).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn race_retries_end_after_the_allowed_attempts() {
        let env = Env::default();
        let mut retries = RaceRetries::new(&env, 3);
        for has_another in [true, true, false] {
            assert_eq!(
                retries.again(PublishError::Expired).await.is_ok(),
                has_another
            );
        }
        let mut retries = RaceRetries::new(&env, 3);
        assert!(
            retries.again(PublishError::NoKey).await.is_err(),
            "it is no race"
        );
    }
}
