//! Repeated attempts of one request, to a registry or to another server.

use fetch::{Fetcher, RetryWaits};

use crate::error::Error;

/// The attempts of one request that are left.
pub(crate) struct Retries<'a> {
    fetcher: &'a Fetcher,
    waits: RetryWaits,
}

impl<'a> Retries<'a> {
    /// Starts the schedule of the settings for a request whose first attempt begins now.
    pub(crate) fn new(fetcher: &'a Fetcher) -> Self {
        Self {
            fetcher,
            waits: RetryWaits::new(&fetcher.settings().retry),
        }
    }

    /// Waits before the next attempt. Returns the error if there is no next attempt.
    pub(crate) async fn pause(&mut self, mut error: Error) -> Result<(), Error> {
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
}

/// Repeats `attempt` until it succeeds, fails for good or has no attempt left.
// Not `AsyncFn`: the compiler does not see yet that the future of such a closure can go to another thread.
pub(crate) async fn retried<T, F>(fetcher: &Fetcher, attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut retries = Retries::new(fetcher);
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => retries.pause(error).await?,
        }
    }
}
