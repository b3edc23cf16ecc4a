use std::time::Duration;

use fetch::{RetrySchedule, RetryWaits};
use tokio::time::Instant;

use crate::SendError;

/// Maximum time for one attempt: the minimum that Standard Webhooks recommends.
const ATTEMPT_MAX: Duration = Duration::from_secs(15);

/// Source of events, and the time for sending them.
#[derive(Debug, Clone)]
pub struct NotifierSettings {
    /// The `source` of every event, a URI reference of this mirror. Default: `/catalogs`.
    pub source: String,
    /// Maximum time for all attempts before the next poll. Default: 30 s, because the command waits for it.
    pub total: Duration,
}

impl Default for NotifierSettings {
    fn default() -> Self {
        Self {
            source: "/catalogs".to_owned(),
            total: Duration::from_secs(30),
        }
    }
}

impl NotifierSettings {
    /// Returns settings for a server, where no command waits: half an hour covers most restarts of a receiver.
    pub fn patient() -> Self {
        Self {
            total: Duration::from_secs(30 * 60),
            ..Self::default()
        }
    }
}

/// The waits between the attempts to send one event: they double from a second, with jitter.
pub(crate) struct SendWaits(RetryWaits);

impl SendWaits {
    pub(crate) fn new(settings: &NotifierSettings) -> Self {
        Self(RetryWaits::new(&RetrySchedule {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(120),
            attempts: None,
            total: settings.total,
        }))
    }

    /// Returns the deadline of an attempt that starts now.
    pub(crate) fn attempt_deadline(&self) -> Instant {
        // An attempt that would outlive the total time is cut off, because a command waits for its end.
        (Instant::now() + ATTEMPT_MAX).min(self.0.deadline())
    }

    /// Returns the wait before the next attempt, or the error if no attempt is left.
    pub(crate) fn after(&mut self, error: SendError) -> Result<Duration, SendError> {
        let SendError::Temporary { retry_after, .. } = &error else {
            return Err(error);
        };
        self.0.next_wait(*retry_after).ok_or(error)
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
