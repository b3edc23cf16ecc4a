//! Deadline of an invocation, and the time that each part of its work gets.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time that is reserved for what follows the work: the status of a poll that was cut off, the
/// metrics and the answer.
const MARGIN: Duration = Duration::from_secs(2);

/// Maximum time that a function can run (AWS Lambda Developer Guide, "Lambda quotas": 15 minutes).
const LAMBDA_LONGEST: Duration = Duration::from_secs(15 * 60);

/// End of the time for the work of an invocation.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    end: Instant,
    /// Time from the start of the invocation to `end`.
    total: Duration,
}

impl Deadline {
    /// Returns the deadline of an invocation that Lambda ends at `end`.
    pub fn at(end: SystemTime) -> Self {
        let since_epoch = end.duration_since(UNIX_EPOCH).unwrap_or_default();
        // cargo-lambda's emulator gives the duration of the invocation as if it were a time, so a
        // time in 1970.
        if since_epoch < LAMBDA_LONGEST {
            return Self::after(since_epoch);
        }
        Self::after(end.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// Returns the deadline of an invocation that ends `time` from now.
    pub fn after(time: Duration) -> Self {
        let total = time.saturating_sub(MARGIN);
        Self {
            end: Instant::now() + total,
            total,
        }
    }

    /// Returns the time until the deadline, zero after it.
    pub fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Returns the maximum time for work that usually takes `expected`, or `None` if it should not
    /// be started.
    pub fn time_for(&self, expected: Duration) -> Option<Duration> {
        let left = self.left();
        // Work that once used up a whole invocation would never start again. It starts if three
        // quarters of the time are left, since more memory or a smaller catalog may have made it
        // faster.
        let wanted = expected.min(self.total * 3 / 4);
        if left.is_zero() || left < wanted {
            return None;
        }
        Some(left)
    }
}

/// Time that is reserved for the batch of deletes in progress and for the answer. A run that is cut
/// off does no harm, because the next one continues.
const WIND_DOWN: Duration = Duration::from_secs(30);

/// Returns the time for deletes: all but [`WIND_DOWN`], and at least half of `left`.
pub(crate) fn working_time(left: Duration) -> Duration {
    left.saturating_sub(WIND_DOWN).max(left / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn deadline_reserves_the_margin() {
        assert!(Deadline::after(MINUTE).left() <= MINUTE - MARGIN);
        assert_eq!(Deadline::after(MARGIN).time_for(Duration::ZERO), None);
        assert_eq!(
            Deadline::at(SystemTime::now() - MINUTE).left(),
            Duration::ZERO
        );
    }

    #[test]
    fn deadline_at_a_time_of_1970_is_a_duration() {
        let left = Deadline::at(UNIX_EPOCH + MINUTE).left();
        assert!(left > MINUTE / 2 && left <= MINUTE - MARGIN, "{left:?}");
    }

    #[test]
    fn time_for_refuses_long_work_unless_most_of_the_time_is_left() {
        let mut deadline = Deadline::after(MINUTE + MARGIN);
        assert!(deadline.time_for(MINUTE / 2).is_some());
        assert!(
            deadline.time_for(MINUTE * 10).is_some(),
            "all the time is left"
        );
        deadline.end -= MINUTE / 2;
        assert!(deadline.time_for(MINUTE / 4).is_some());
        assert_eq!(deadline.time_for(MINUTE * 10), None);
        assert_eq!(deadline.time_for(MINUTE / 2), None);
    }

    #[test]
    fn working_time_leaves_thirty_seconds_or_half() {
        let after = |seconds| working_time(Duration::from_secs(seconds)).as_secs();
        assert_eq!(
            [after(298), after(60), after(20), after(0)],
            [268, 30, 10, 0]
        );
    }
}
