//! When to try again.

use std::time::{Duration, Instant, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::registry::Fault;
use crate::settings::Retry;

/// The waits between the attempts of one request.
pub(crate) struct Waits {
    delays: ExponentialBackoff,
    deadline: Instant,
}

impl Waits {
    pub(crate) fn new(retry: &Retry) -> Self {
        let delays = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(retry.first)
            .with_max_delay(retry.longest)
            .with_max_times(retry.attempts.saturating_sub(1))
            .build();
        Self {
            delays,
            deadline: Instant::now() + retry.total,
        }
    }

    /// How long to wait before the next attempt, or the fault if there is no point in one.
    pub(crate) fn after(&mut self, fault: Fault) -> Result<Duration, Fault> {
        if !fault.is_transient() {
            return Err(fault);
        }
        let Some(delay) = self.delays.next() else {
            return Err(fault);
        };
        // Never sooner than asked, and some jitter on top, lest all clients come back at once.
        let delay = fault
            .retry_after()
            .map_or(delay, |asked| asked.saturating_add(delay / 4));
        // Compared as durations: what a registry asks for may lie beyond what the clock can hold.
        if delay > self.deadline.saturating_duration_since(Instant::now()) {
            Err(fault)
        } else {
            Ok(delay)
        }
    }
}

/// `Retry-After`, as seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
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

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let parse = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(parse("120"), Some(Duration::from_secs(120)));
        assert_eq!(parse("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        assert!(parse(&soon).unwrap() > Duration::from_secs(90));
        assert_eq!(parse("soon"), None);
    }
}
