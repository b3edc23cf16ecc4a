//! A body must come, and not drop by drop.

use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::Response;

use crate::registry::Fault;
use crate::settings::Pace;

/// Watches one body. Only time spent waiting for the registry counts, not what the reader takes.
pub(crate) struct Paced<'a> {
    pace: &'a Pace,
    waited: Duration,
    bytes: u64,
}

impl<'a> Paced<'a> {
    pub(crate) fn new(pace: &'a Pace) -> Self {
        Self {
            pace,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    /// The next piece of the body. How long one may take is bounded by the client.
    pub(crate) async fn chunk(&mut self, response: &mut Response) -> Result<Option<Bytes>, Fault> {
        let started = Instant::now();
        let chunk = response.chunk().await.map_err(Fault::of)?;
        if let Some(bytes) = &chunk {
            self.note(started.elapsed(), bytes.len() as u64)?;
        }
        Ok(chunk)
    }

    fn note(&mut self, waited: Duration, bytes: u64) -> Result<(), Fault> {
        self.waited += waited;
        self.bytes += bytes;
        if self.waited < self.pace.over {
            return Ok(());
        }
        if self.bytes < self.pace.least_bytes {
            return Err(Fault::Slow {
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
    fn exactly_the_least_passes_and_one_less_does_not() {
        let pace = Pace {
            least_bytes: 100,
            over: Duration::from_secs(10),
        };
        let second = Duration::from_secs(1);
        let mut paced = Paced::new(&pace);
        for _ in 0..30 {
            paced.note(second, 10).unwrap();
        }
        for _ in 0..9 {
            paced.note(second, 10).unwrap();
        }
        assert!(matches!(paced.note(second, 9), Err(Fault::Slow { bytes: 99, .. })));
    }
}
