use std::time::Duration;

use retry::Schedule;
use tokio::time::Instant;

use crate::{SendError, Settings};

/// The waits between the attempts to send one event.
pub(crate) struct Waits {
    waits: retry::Waits,
    attempt: Duration,
}

impl Waits {
    pub(crate) fn new(settings: &Settings) -> Self {
        let waits = retry::Waits::new(&Schedule {
            first: settings.first,
            longest: settings.longest,
            attempts: None,
            total: settings.total,
        });
        Self {
            waits,
            attempt: settings.attempt,
        }
    }

    /// When an attempt that starts now has to be over.
    pub(crate) fn limit(&self) -> Instant {
        (Instant::now() + self.attempt).min(self.waits.deadline())
    }

    /// How long to wait before the next attempt, or the error if there is no point in one.
    pub(crate) fn after(&mut self, error: SendError) -> Result<Duration, SendError> {
        let SendError::Temporary { retry_after, .. } = &error else {
            return Err(error);
        };
        self.waits.after(*retry_after).ok_or(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(retry_after: Option<u64>) -> SendError {
        SendError::Temporary {
            retry_after: retry_after.map(Duration::from_secs),
            source: "busy".into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_until_the_time_is_over() {
        let mut waits = Waits::new(&Settings::default());
        let mut total = Duration::ZERO;
        while let Ok(wait) = waits.after(asked(None)) {
            total += wait;
            tokio::time::sleep(wait).await;
        }
        // 1, 2, 4, ... seconds, each up to twice as long: the next would end after 30 s.
        assert!(
            total > Duration::from_secs(7) && total <= Duration::from_secs(30),
            "{total:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_is_not_asked_sooner_than_it_wants_nor_after_the_limit() {
        let mut waits = Waits::new(&Settings::default());
        assert!(waits.after(asked(Some(20))).unwrap() >= Duration::from_secs(20));
        assert!(waits.after(asked(Some(31))).is_err());
        assert!(waits.after(asked(Some(u64::MAX))).is_err());
        assert!(waits.after(SendError::Refused("401".into())).is_err());
        assert!(waits.after(SendError::Permanent("410".into())).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_attempt_ends_with_the_time() {
        let waits = Waits::new(&Settings::default());
        assert_eq!(waits.limit() - Instant::now(), Duration::from_secs(15));
        tokio::time::sleep(Duration::from_secs(28)).await;
        assert_eq!(waits.limit() - Instant::now(), Duration::from_secs(2));
    }
}
