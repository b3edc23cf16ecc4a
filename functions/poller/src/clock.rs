//! How much time an invocation has.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Kept for what comes after the work: a status that says so, metrics, the answer.
const MARGIN: Duration = Duration::from_secs(2);

/// No function runs for longer (AWS Lambda Developer Guide, "Lambda quotas": 15 minutes).
const LAMBDA_LONGEST: Duration = Duration::from_secs(15 * 60);

/// When the work of an invocation has to end.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    end: Instant,
    total: Duration,
}

impl Deadline {
    /// Of an invocation that Lambda ends at `end`. cargo-lambda's emulator tells how long it may take instead of when it
    /// ends, which as a time is one of the year 1970.
    pub fn at(end: SystemTime) -> Self {
        let since_epoch = end.duration_since(UNIX_EPOCH).unwrap_or_default();
        if since_epoch < LAMBDA_LONGEST {
            return Self::after(since_epoch);
        }
        Self::after(end.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Of an invocation that may take so long from now on.
    pub fn after(time: Duration) -> Self {
        let total = time.saturating_sub(MARGIN);
        Self {
            end: Instant::now() + total,
            total,
        }
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// The time that work may take which is expected to take `expected`; none if it had better not be started.
    ///
    /// What has used up most of the time once is expected to do so again. It is given another chance whenever three
    /// quarters of all the time are left: more memory or a smaller catalog may have made it faster since.
    pub fn time_for(&self, expected: Duration) -> Option<Duration> {
        let left = self.left();
        let wanted = expected.min(self.total * 3 / 4);
        (!left.is_zero() && wanted <= left).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_margin_is_kept() {
        assert!(Deadline::after(MINUTE).left() <= MINUTE - MARGIN);
        assert_eq!(Deadline::after(MARGIN).time_for(Duration::ZERO), None);
        assert_eq!(Deadline::at(SystemTime::now() - MINUTE).left(), Duration::ZERO);
    }

    #[test]
    fn a_time_of_1970_is_how_long_it_may_take() {
        let left = Deadline::at(UNIX_EPOCH + MINUTE).left();
        assert!(left > MINUTE / 2 && left <= MINUTE - MARGIN, "{left:?}");
    }

    #[test]
    fn only_what_fits_is_started_but_nothing_is_locked_out() {
        let mut deadline = Deadline::after(MINUTE + MARGIN);
        assert!(deadline.time_for(MINUTE / 2).is_some());
        assert!(deadline.time_for(MINUTE * 10).is_some(), "all the time is left");
        deadline.end -= MINUTE / 2;
        assert!(deadline.time_for(MINUTE / 4).is_some());
        assert_eq!(deadline.time_for(MINUTE * 10), None);
        assert_eq!(deadline.time_for(MINUTE / 2), None);
    }
}
