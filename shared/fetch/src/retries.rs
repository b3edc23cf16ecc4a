//! Repeated attempts of one request.

use crate::client::Fetcher;
use crate::error::FetchError;
use crate::retry::{AttemptCount, RetryWaits};

/// Error of a request that can be repeated.
pub trait RequestError {
    /// Returns the failure of the exchange itself, which the next attempt may not meet, and the attempts that the error names.
    fn exchange_mut(&mut self) -> Option<(&mut FetchError, &mut AttemptCount)>;
}

/// The attempts of one request that are left.
pub struct Retries {
    fetcher: Fetcher,
    waits: RetryWaits,
}

impl Retries {
    /// Starts the schedule of the settings for a request whose first attempt begins now.
    pub fn new(fetcher: &Fetcher) -> Self {
        Self {
            fetcher: fetcher.clone(),
            waits: RetryWaits::new(&fetcher.settings().retry),
        }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The error of the last attempt if there is no next one.
    pub async fn pause<E: RequestError>(&mut self, mut error: E) -> Result<(), E> {
        let Some((failure, attempts)) = error.exchange_mut() else {
            return Err(error);
        };
        let Some(delay) = self.waits.wait_after(failure) else {
            *attempts = self.waits.attempts();
            return Err(error);
        };
        tracing::debug!(failure = %failure, delay_ms = delay.as_millis(), "retrying the request");
        match self.fetcher.pause(delay).await {
            Ok(()) => Ok(()),
            Err(too_long) => {
                *failure = too_long;
                Err(error)
            }
        }
    }

    /// Repeats `attempt` until it succeeds, fails for good or has no attempt left.
    ///
    /// # Errors
    /// The error of the last attempt.
    // Not `AsyncFn`: the compiler does not see yet that the future of such a closure can go to another thread.
    pub async fn run<T, E: RequestError, F>(&mut self, attempt: impl Fn() -> F) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        loop {
            match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) => self.pause(error).await?,
            }
        }
    }
}
