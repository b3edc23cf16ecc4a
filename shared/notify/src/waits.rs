use std::time::Duration;

use fetch::{RetrySchedule, RetryWaits};
use tokio::time::Instant;

use crate::{NotifierSettings, SendError};

/// The waits between the attempts to send one event.
pub(crate) struct SendWaits {
    waits: RetryWaits,
    attempt: Duration,
}

impl SendWaits {
    pub(crate) fn new(settings: &NotifierSettings) -> Self {
        let waits = RetryWaits::new(&RetrySchedule {
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

    /// Returns the deadline of an attempt that starts now.
    pub(crate) fn attempt_deadline(&self) -> Instant {
        // An attempt that would outlive the total time is cut off, because a command waits for its end.
        (Instant::now() + self.attempt).min(self.waits.deadline())
    }

    /// Returns the wait before the next attempt, or the error if no attempt is left.
    pub(crate) fn after(&mut self, error: SendError) -> Result<Duration, SendError> {
        let SendError::Temporary { retry_after, .. } = &error else {
            return Err(error);
        };
        self.waits.next_wait(*retry_after).ok_or(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<u64>) -> SendError {
        SendError::Temporary {
            retry_after: retry_after.map(Duration::from_secs),
            source: "busy".into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_within_total_time() {
        let mut waits = SendWaits::new(&NotifierSettings::default());
        let mut total = Duration::ZERO;
        while let Ok(wait) = waits.after(busy(None)) {
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
    async fn wait_honours_retry_after_within_total_time() {
        let mut waits = SendWaits::new(&NotifierSettings::default());
        assert!(waits.after(busy(Some(20))).unwrap() >= Duration::from_secs(20));
        assert!(waits.after(busy(Some(31))).is_err());
        assert!(waits.after(busy(Some(u64::MAX))).is_err());
        assert!(waits.after(SendError::Refused("401".into())).is_err());
        assert!(waits.after(SendError::Permanent("410".into())).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn last_attempt_ends_with_total_time() {
        let waits = SendWaits::new(&NotifierSettings::default());
        assert_eq!(waits.attempt_deadline() - Instant::now(), Duration::from_secs(15));
        tokio::time::sleep(Duration::from_secs(28)).await;
        assert_eq!(waits.attempt_deadline() - Instant::now(), Duration::from_secs(2));
    }
}
