//! Enforcement of the minimum speed of a body.

use std::time::Duration;

use crate::error::FetchError;
use crate::settings::MinThroughput;

/// Measures one body. Counts only the time spent waiting for the server, not the time that the consumer takes.
#[derive(Debug)]
pub(crate) struct ThroughputGuard {
    minimum: MinThroughput,
    waited: Duration,
    bytes: u64,
}

impl ThroughputGuard {
    pub(crate) const fn new(minimum: MinThroughput) -> Self {
        Self {
            minimum,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    /// Records a chunk. A single wait has its own limit, the read timeout.
    pub(crate) fn record(&mut self, waited: Duration, bytes: u64) -> Result<(), FetchError> {
        self.waited += waited;
        self.bytes += bytes;
        if self.waited < self.minimum.period {
            return Ok(());
        }
        if self.bytes < self.minimum.bytes {
            return Err(FetchError::TooSlow {
                bytes: self.bytes,
                waited: self.waited,
            });
        }
        (self.waited, self.bytes) = (Duration::ZERO, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guard_accepts_exact_minimum_and_refuses_one_byte_less() {
        let minimum = MinThroughput {
            bytes: 100,
            period: Duration::from_secs(10),
        };
        let second = Duration::from_secs(1);
        let mut guard = ThroughputGuard::new(minimum);
        // Three periods and the start of a fourth.
        for _ in 0..39 {
            guard.record(second, 10).unwrap();
        }
        let refused = guard.record(second, 9);
        assert!(matches!(refused, Err(FetchError::TooSlow { bytes: 99, .. })));
    }
}
