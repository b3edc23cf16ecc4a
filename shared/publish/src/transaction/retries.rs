use std::time::Duration;

use model::CatalogName;

use crate::Env;

/// First wait after a lost race. It doubles with each further one, which spreads two writers apart.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// Longest wait after a lost race: a publication takes seconds, so more would only be late.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// An error that may be a lost race.
pub trait RetryableError: std::error::Error + Send + Sync + 'static {
    /// True if starting again at once may help.
    fn is_race(&self) -> bool;
}

/// Bounded retries after lost races, with waits that grow and jitter. Hold no permit while you wait.
#[derive(Debug)]
pub struct RaceRetries<'a> {
    env: &'a Env,
    catalog: &'a CatalogName,
    attempt: u32,
    attempts: u32,
}

impl<'a> RaceRetries<'a> {
    /// Allows `attempts` in all, at least one.
    pub const fn new(env: &'a Env, attempts: u32, catalog: &'a CatalogName) -> Self {
        Self {
            env,
            catalog,
            attempt: 1,
            attempts,
        }
    }

    /// Waits before the next attempt. False, without a wait, if the error is not a race or no attempt is left.
    pub async fn retry<E: RetryableError>(&mut self, error: &E) -> bool {
        // Errors that would come back at once, such as missing permissions, are not repeated.
        if !error.is_race() || self.attempt >= self.attempts {
            return false;
        }
        let (catalog, attempt) = (self.catalog, self.attempt);
        tracing::info!(%catalog, attempt, error = model::text::chain(error), "starting again after a lost race");
        let wait = FIRST_WAIT
            .saturating_mul(2_u32.saturating_pow(attempt - 1))
            .min(WAIT_MAX);
        self.attempt += 1;
        tokio::time::sleep(self.env.jittered(wait)).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PublishError;

    #[tokio::test(start_paused = true)]
    async fn race_retries_end_after_the_allowed_attempts() {
        let (env, catalog) = (Env::default(), "a".parse().unwrap());
        let mut retries = RaceRetries::new(&env, 3, &catalog);
        let error = PublishError::Expired;
        let waits = [
            retries.retry(&error).await,
            retries.retry(&error).await,
            retries.retry(&error).await,
        ];
        assert_eq!(waits, [true, true, false]);
        let mut retries = RaceRetries::new(&env, 3, &catalog);
        assert!(!retries.retry(&PublishError::NoKey).await, "it is no race");
    }
}
