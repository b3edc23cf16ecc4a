//! Bytes and requests so far, and the time spent waiting for servers.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::timeout;

use crate::error::FetchError;

/// Amount of traffic of a [`Fetcher`](crate::Fetcher) so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of bodies received, without headers.
    pub bytes: u64,
    /// Requests sent, redirects and retries included.
    pub requests: u64,
}

#[derive(Debug, Default)]
pub(crate) struct TrafficCounter {
    pub(crate) counted: Mutex<Traffic>,
    /// Time spent waiting for servers. Waits that overlap count each.
    pub(crate) waited: Mutex<Duration>,
    /// Maximum of `waited`. `None` for no limit.
    pub(crate) wait_max: Option<Duration>,
}

impl TrafficCounter {
    /// Waits for a server, or before another attempt, within what is left of the limit.
    pub(crate) async fn wait<T>(&self, awaited: impl Future<Output = T>) -> Result<T, FetchError> {
        let Some(max) = self.wait_max else {
            return Ok(awaited.await);
        };
        let left = max.saturating_sub(*self.waited.lock());
        let started = Instant::now();
        let waited = timeout(left, awaited).await;
        *self.waited.lock() += started.elapsed();
        waited.map_err(|_| FetchError::WaitedTooLong(max))
    }
}
