//! When to try again.

use std::time::Duration;

use layout::Key;
use retry::Schedule;

use super::{HttpError, HttpSettings};
use crate::OriginError;

/// The longest of the doubling waits.
const LONGEST: Duration = Duration::from_secs(10);

/// The waits between the attempts of one request.
pub(super) struct Waits(retry::Waits);

impl Waits {
    pub(super) fn new(settings: &HttpSettings) -> Self {
        Self(retry::Waits::new(&Schedule {
            first: settings.first_wait,
            longest: LONGEST,
            attempts: Some(settings.attempts),
            total: settings.patience,
        }))
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
        self.0.after(error.retry_after()).ok_or(error)
    }
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
}
