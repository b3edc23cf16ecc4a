//! When to try again.

use std::time::Duration;

use retry::Schedule;

use crate::registry::Fault;
use crate::settings::Retry;

/// The waits between the attempts of one request.
pub(crate) struct Waits(retry::Waits);

impl Waits {
    pub(crate) fn new(retry: &Retry) -> Self {
        Self(retry::Waits::new(&Schedule {
            first: retry.first,
            longest: retry.longest,
            attempts: Some(retry.attempts),
            total: retry.total,
        }))
    }

    /// How long to wait before the next attempt, or the fault if there is no point in one.
    pub(crate) fn after(&mut self, fault: Fault) -> Result<Duration, Fault> {
        if !fault.is_transient() {
            return Err(fault);
        }
        self.0.after(fault.retry_after()).ok_or(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(seconds: Option<u64>) -> Fault {
        Fault::RateLimited {
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    #[test]
    fn attempts_and_total_time_are_bounded() {
        let retry = Retry {
            attempts: 3,
            total: Duration::from_secs(60),
            ..Retry::default()
        };
        let mut waits = Waits::new(&retry);
        assert!(waits.after(limited(None)).unwrap() < Duration::from_secs(1));
        let asked = waits.after(limited(Some(5))).unwrap();
        assert!(
            asked >= Duration::from_secs(5) && asked < Duration::from_secs(9),
            "{asked:?}"
        );
        assert!(waits.after(limited(None)).is_err());
        assert!(Waits::new(&retry).after(limited(Some(61))).is_err());
        assert!(Waits::new(&retry).after(limited(Some(u64::MAX))).is_err());
        assert!(Waits::new(&retry).after(Fault::PlainHttp).is_err());
    }
}
