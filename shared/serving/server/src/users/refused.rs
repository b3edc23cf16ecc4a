//! Warnings about refused logins, which a flood of them must not repeat without end.

use std::net::SocketAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Time in which at most [`WARNINGS_MAX`] warnings are logged.
const WINDOW: Duration = Duration::from_secs(60);

/// Number of warnings in [`WINDOW`]: enough to see who tries.
const WARNINGS_MAX: u64 = 10;

/// Logs refused logins.
#[derive(Debug, Default)]
pub(crate) struct RefusedLogins(Mutex<Option<Window>>);

/// Refused logins of one window.
#[derive(Debug, Clone, Copy)]
struct Window {
    begun: Instant,
    count: u64,
}

impl RefusedLogins {
    /// Logs that a login was refused, or counts it for a later warning.
    pub(crate) fn warn(&self, peer: SocketAddr, user: Option<&str>) {
        let Some(before) = self.count() else {
            return;
        };
        let user = user.map(|user| model::text::line(user, USER_CHARS));
        // A field without a value is left out.
        tracing::warn!(%peer, user, not_logged = before, "refused a login");
    }

    /// Counts a refused login. Returns the number of logins before it that were not logged, if this
    /// one has to be.
    fn count(&self) -> Option<u64> {
        let mut window = self.0.lock();
        let is_over = window.is_none_or(|window| window.begun.elapsed() >= WINDOW);
        if !is_over && let Some(window) = window.as_mut() {
            window.count += 1;
            return (window.count <= WARNINGS_MAX).then_some(0);
        }
        let before = window.map_or(0, |window| window.count.saturating_sub(WARNINGS_MAX));
        *window = Some(Window {
            begun: Instant::now(),
            count: 1,
        });
        Some(before)
    }
}

/// Longest name of a user in a warning, in characters.
const USER_CHARS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refused_logins_are_ten_warnings_a_minute_and_a_count() {
        let refused = RefusedLogins::default();
        let count = |times: u32| {
            (0..times)
                .filter_map(|_| refused.count())
                .collect::<Vec<_>>()
        };
        assert_eq!(count(1000), [0; 10]);
        tokio::time::advance(WINDOW).await;
        assert_eq!(count(2), [990, 0]);
        tokio::time::advance(WINDOW).await;
        assert_eq!(count(1), [0]);
    }
}
