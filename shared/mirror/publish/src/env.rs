use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Clocks and randomness, passed in so that a simulation can repeat a run exactly.
#[derive(Clone)]
pub struct Env {
    /// Returns the time of day, for dates in documents. It may jump, so no deadline depends on it.
    pub clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Returns a time that only grows and goes on while the machine is suspended: the time since
    /// boot. A Lambda is frozen between invocations, and a deadline must not stand still meanwhile.
    pub since_boot: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// Returns a number from 0 up to, but not including, 1.
    pub rng: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl Default for Env {
    /// Returns the clocks of the system and its random numbers.
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemTime::now),
            since_boot: Arc::new(since_boot),
            rng: Arc::new(rand::random),
        }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}

impl Env {
    /// Returns a wait that is up to a tenth shorter or longer, so that thousands of mirrors do not
    /// ask at the same moment.
    pub fn jittered(&self, wait: Duration) -> Duration {
        wait.mul_f64(0.9 + 0.2 * (self.rng)())
    }
}

/// Cuts a time to whole seconds, as documents write it.
pub(crate) fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

fn since_boot() -> Duration {
    // Only Linux and Android have a clock that counts suspended time under this name.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    let nanos = time.tv_nsec.try_into().unwrap_or_default();
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jittered_stays_within_a_tenth_by_the_given_rng() {
        let minutes = |random| {
            let rng: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(move || random);
            let env = Env {
                rng,
                ..Env::default()
            };
            env.jittered(Duration::from_secs(100 * 60)).as_secs() / 60
        };
        assert_eq!([0.0, 0.5, 0.999].map(minutes), [90, 100, 109]);
    }

    #[test]
    fn since_boot_grows() {
        let first = since_boot();
        assert!(first > Duration::ZERO && since_boot() >= first);
    }

    #[test]
    fn whole_seconds_drops_the_fraction() {
        let time = UNIX_EPOCH + Duration::from_millis(1999);
        assert_eq!(whole_seconds(time), UNIX_EPOCH + Duration::from_secs(1));
    }
}
