//! Attempts of one request and the waits between them.

use std::fmt;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep};

use crate::{client::Fetcher, error::FetchError, settings::RetrySchedule};

/// The waits between the attempts of one request.
#[derive(Debug)]
pub struct RetryWaits {
    delays: ExponentialBackoff,
    /// End of the schedule.
    pub deadline: Instant,
    attempts: AttemptCount,
}

/// Number of attempts of one request, for errors. Its text is empty for one attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttemptCount {
    /// Attempts after the first.
    repeats: usize,
}

impl fmt::Display for AttemptCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repeats {
            0 => Ok(()),
            repeats => write!(f, " ({} attempts)", repeats + 1),
        }
    }
}

impl RetryWaits {
    /// Starts the schedule for a request whose first attempt begins now.
    pub fn new(schedule: &RetrySchedule) -> Self {
        // Jitter, because clients that failed together would otherwise return together.
        let builder = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(schedule.first)
            .with_max_delay(schedule.longest);
        let delays = match schedule.attempts {
            Some(attempts) => builder.with_max_times(attempts.saturating_sub(1)).build(),
            None => builder.without_max_times().build(),
        };
        Self {
            delays,
            deadline: Instant::now() + schedule.total,
            attempts: AttemptCount::default(),
        }
    }

    /// Returns the wait before the next attempt, or `None` if no attempt is left. `asked` is the
    /// value of `Retry-After`.
    pub fn next_wait(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let own = self.delays.next()?;
        let delay = match asked {
            // Never earlier than the server asked. The extra quarter spreads the clients that were
            // given the same time.
            Some(asked) => asked.saturating_add(own / 4),
            None => own,
        };
        // Compared as durations: a server can ask for a wait beyond the range of the clock.
        if delay > self.deadline.saturating_duration_since(Instant::now()) {
            return None;
        }
        self.attempts.repeats += 1;
        Some(delay)
    }
}

/// Error of a request that can be repeated.
pub trait RequestError {
    /// Returns the failure of the exchange itself, which the next attempt may not meet, and the
    /// attempts that the error names.
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

    /// Starts the schedule again.
    pub(crate) fn renew(&mut self) {
        self.waits = RetryWaits::new(&self.fetcher.settings().retry);
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The error of the last attempt if there is no next one.
    pub async fn pause<E: RequestError>(&mut self, mut error: E) -> Result<(), E> {
        let Some((failure, attempts)) = error.exchange_mut() else {
            return Err(error);
        };
        let mut delay = None;
        if failure.is_transient() {
            delay = self.waits.next_wait(failure.retry_after());
        }
        let Some(delay) = delay else {
            *attempts = self.waits.attempts;
            return Err(error);
        };
        tracing::debug!(failure = %failure, delay_ms = delay.as_millis(), "retrying the request");
        if let Err(too_long) = self.fetcher.traffic.wait(sleep(delay)).await {
            *failure = too_long;
            return Err(error);
        }
        Ok(())
    }

    /// Repeats `attempt` until it succeeds, fails for good or has no attempt left.
    ///
    /// # Errors
    /// The error of the last attempt.
    // Not `AsyncFn`: the compiler does not see yet that the future of such a closure can go to
    // another thread.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FetchSettings;

    const SECOND: Duration = Duration::from_secs(1);

    const SCHEDULE: RetrySchedule = RetrySchedule {
        first: SECOND,
        longest: Duration::from_secs(4),
        attempts: Some(6),
        total: Duration::from_secs(60),
    };

    async fn all_waits(schedule: &RetrySchedule) -> Vec<Duration> {
        let mut waits = RetryWaits::new(schedule);
        let mut all = Vec::new();
        while let Some(wait) = waits.next_wait(None) {
            tokio::time::sleep(wait).await;
            all.push(wait);
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_to_longest_for_each_attempt() {
        let all = all_waits(&SCHEDULE).await;
        assert_eq!(all.len(), 5, "six attempts have five waits between them");
        for (wait, least) in all.iter().zip([1, 2, 4, 4, 4]) {
            let least = least * SECOND;
            assert!(*wait >= least && *wait <= 2 * least, "{all:?}");
        }
        for attempts in [Some(0), Some(1)] {
            assert!(
                all_waits(&RetrySchedule {
                    attempts,
                    ..SCHEDULE
                })
                .await
                .is_empty()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_without_attempt_limit_fill_total_time() {
        let schedule = RetrySchedule {
            attempts: None,
            ..SCHEDULE
        };
        let all = all_waits(&schedule).await;
        let total: Duration = all.iter().sum();
        // The next wait would take at most eight seconds.
        assert!(total > 52 * SECOND && total <= schedule.total, "{all:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_counts_from_first_attempt() {
        let mut waits = RetryWaits::new(&SCHEDULE);
        let deadline = waits.deadline;
        assert_eq!(deadline, Instant::now() + SCHEDULE.total);
        tokio::time::sleep(59 * SECOND).await;
        assert_eq!(waits.next_wait(None), None);
        assert_eq!(waits.deadline, deadline);
    }

    impl RequestError for FetchError {
        fn exchange_mut(&mut self) -> Option<(&mut FetchError, &mut AttemptCount)> {
            Some((self, Box::leak(Box::default())))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pause_after_permanent_error_fails() {
        let rate_limited = |seconds: Option<u64>| FetchError::RateLimited {
            retry_after: seconds.map(Duration::from_secs),
        };
        let mut settings = FetchSettings::default();
        settings.retry.attempts = Some(3);
        let fetcher = Fetcher::new(settings).unwrap();
        let (mut retries, begun) = (Retries::new(&fetcher), Instant::now());
        retries.pause(rate_limited(None)).await.unwrap();
        assert!(begun.elapsed() < SECOND);
        retries.pause(rate_limited(Some(5))).await.unwrap();
        let waited = begun.elapsed();
        assert!(waited >= 5 * SECOND && waited < 9 * SECOND, "{waited:?}");
        assert!(retries.pause(rate_limited(None)).await.is_err());
        for error in [
            rate_limited(Some(61)),
            rate_limited(Some(u64::MAX)),
            FetchError::NotTls,
        ] {
            assert!(Retries::new(&fetcher).pause(error).await.is_err());
        }
    }
}
