use std::time::Duration;

use model::PREVIOUS_MAX;
use publish::Env;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Earlier publications that are kept besides what is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of earlier publications of a catalog. Default: all that `current.json`
    /// remembers, 16.
    pub generations: usize,
    /// Maximum time after an earlier publication was replaced. Default: 30 days.
    pub max_age: Duration,
    /// Time after its replacement for which an earlier publication is kept in any case. Default: 24
    /// h, for which shared caches may serve a stale `current.json` (`stale-if-error`).
    pub grace: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            generations: PREVIOUS_MAX,
            max_age: 30 * DAY,
            grace: DAY,
        }
    }
}

impl Retention {
    /// Replaces the values that are given. `days` are those of [`Retention::max_age`].
    #[must_use]
    pub fn with(
        self,
        generations: Option<usize>,
        days: Option<u64>,
        grace: Option<Duration>,
    ) -> Self {
        let max_age = match days {
            Some(days) => Duration::from_secs(days.saturating_mul(DAY.as_secs())),
            None => self.max_age,
        };
        Self {
            generations: generations.unwrap_or(self.generations),
            max_age,
            grace: grace.unwrap_or(self.grace),
        }
    }
}

/// Options of one run of garbage collection.
#[derive(Debug, Clone, Default)]
pub struct GcOptions {
    /// Earlier publications whose objects are kept. Default: those of the last 30 days, at most 16
    /// of each catalog.
    pub retention: Retention,
    /// Takes all steps at once, without the waits. Safe only while no other process reads or writes
    /// the store. Default: false.
    pub offline: bool,
    /// Writes nothing, and reports what would be condemned. Default: false.
    pub dry_run: bool,
    /// Maximum duration of the deletes. What is left is deleted by the next run within the 30
    /// minutes, or condemned again. Default: none.
    pub time: Option<Duration>,
    /// Clocks and randomness. Default: the system's.
    pub env: Env,
}
