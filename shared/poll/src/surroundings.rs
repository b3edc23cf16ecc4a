use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// What a turn takes from the world besides its inputs: the time, and chance. Given, so that a turn can be run again
/// exactly as it was.
#[derive(Clone)]
pub struct Surroundings {
    /// The time.
    pub clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// A number from 0 up to, but not including, 1.
    pub chance: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl Default for Surroundings {
    /// The clock of the system and its random numbers.
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemTime::now),
            chance: Arc::new(rand::random),
        }
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

impl Surroundings {
    /// Whole seconds, as documents write them.
    pub(crate) fn now(&self) -> SystemTime {
        let since = (self.clock)().duration_since(UNIX_EPOCH).unwrap_or_default();
        UNIX_EPOCH + Duration::from_secs(since.as_secs())
    }

    /// A wait, up to a tenth shorter or longer, so that thousands of mirrors do not ask at the same moment.
    pub(crate) fn jittered(&self, wait: Duration) -> Duration {
        wait.mul_f64(0.9 + 0.2 * (self.chance)())
    }
}

/// A wait, up to a tenth shorter or longer, by the random numbers of the system.
pub fn jittered(wait: Duration) -> Duration {
    Surroundings::default().jittered(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_a_tenth() {
        let hour = Duration::from_secs(3600);
        for _ in 0..1000 {
            let wait = jittered(hour);
            assert!(wait >= hour.mul_f64(0.9) && wait <= hour.mul_f64(1.1), "{wait:?}");
        }
    }

    #[test]
    fn what_is_given_is_used() {
        let given = Surroundings {
            clock: Arc::new(|| UNIX_EPOCH + Duration::from_millis(1999)),
            chance: Arc::new(|| 0.5),
        };
        assert_eq!(given.now(), UNIX_EPOCH + Duration::from_secs(1));
        assert_eq!(given.jittered(Duration::from_secs(7)), Duration::from_secs(7));
    }
}
