//! When to try again.

use std::time::{Duration, Instant, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use layout::Key;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::{HttpError, HttpSettings};
use crate::OriginError;

/// The longest of the doubling waits.
const LONGEST: Duration = Duration::from_secs(10);

/// The waits between the attempts of one request.
pub(super) struct Waits {
    delays: ExponentialBackoff,
    deadline: Instant,
}

impl Waits {
    pub(super) fn new(settings: &HttpSettings) -> Self {
        let delays = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(settings.first_wait)
            .with_max_delay(LONGEST)
            .with_max_times(settings.attempts.saturating_sub(1))
            .build();
        Self {
            delays,
            deadline: Instant::now() + settings.patience,
        }
    }

    /// Waits before the next attempt, or gives the error back if there is no point in one.
    pub(super) async fn pause(&mut self, key: &Key, error: HttpError) -> Result<(), OriginError> {
        let delay = self.after(error).map_err(|error| error.at(key))?;
        tracing::debug!(%key, delay_ms = delay.as_millis(), "retrying");
        tokio::time::sleep(delay).await;
        Ok(())
    }

    fn after(&mut self, error: HttpError) -> Result<Duration, HttpError> {
        if !error.is_transient() {
            return Err(error);
        }
        let Some(delay) = self.delays.next() else {
            return Err(error);
        };
        // Never sooner than asked, and some jitter on top, lest all clients come back at once.
        let delay = error
            .retry_after()
            .map_or(delay, |asked| asked.saturating_add(delay / 4));
        // Compared as durations: what a server asks for may lie beyond what the clock can hold.
        if delay > self.deadline.saturating_duration_since(Instant::now()) {
            Err(error)
        } else {
            Ok(delay)
        }
    }
}

/// `Retry-After`, as seconds or as a date (RFC 9110, section 10.2.3).
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    fn unavailable(seconds: Option<u64>) -> HttpError {
        HttpError::Unavailable {
            status: StatusCode::TOO_MANY_REQUESTS,
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    #[test]
    fn attempts_and_total_time_are_bounded() {
        let settings = HttpSettings {
            attempts: 3,
            ..HttpSettings::default()
        };
        let mut waits = Waits::new(&settings);
        assert!(waits.after(unavailable(None)).unwrap() < Duration::from_secs(1));
        let asked = waits.after(unavailable(Some(5))).unwrap();
        assert!(
            asked >= Duration::from_secs(5) && asked < Duration::from_secs(9),
            "{asked:?}"
        );
        assert!(waits.after(unavailable(None)).is_err());
        assert!(Waits::new(&settings).after(unavailable(Some(61))).is_err());
        assert!(Waits::new(&settings).after(unavailable(Some(u64::MAX))).is_err());
        assert!(Waits::new(&settings).after(HttpError::NotFound).is_err());
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
        assert_eq!(parse("soon"), None);
    }
}
