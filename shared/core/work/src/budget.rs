use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::{MemoryPool, MemoryShare};

/// Default number of steps: some seconds of comparisons. The largest real catalog takes a
/// hundredth.
pub const DEFAULT_STEPS: u64 = 1_000_000_000;

/// Bound of the work for one purpose. Copies share it: what stops one stops all.
#[derive(Clone, Debug)]
pub struct Budget(Arc<SharedBudget>);

#[derive(Debug)]
struct SharedBudget {
    stopped: AtomicBool,
    steps: u64,
    used: AtomicU64,
    memory: MemoryPool,
    /// Place of the work among others.
    place: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// Reason why work ends before its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OverBudget {
    /// The result is not wanted any more.
    #[error("was not done to its end: the result is not wanted any more")]
    Stopped,
    /// The work takes more steps than it may.
    #[error("exceeds the limit steps of {0}")]
    Steps(u64),
}

impl Budget {
    /// Creates a budget of this many steps, whose work takes its memory from `memory`.
    #[must_use]
    pub fn new(steps: u64, memory: MemoryPool) -> Self {
        Self(Arc::new(SharedBudget {
            stopped: AtomicBool::new(false),
            steps,
            used: AtomicU64::new(0),
            memory,
            place: OnceLock::new(),
        }))
    }

    /// Holds the place of the work among others, such as a permit, until the last copy of the
    /// budget is dropped: a thread that goes on after a time-out keeps it. Only the first place is
    /// held.
    pub fn hold(&self, place: impl Any + Send + Sync) {
        drop(self.0.place.set(Box::new(place)));
    }

    /// Ends the work: each thread fails at its next charge.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns true if the work is to end.
    #[must_use]
    #[inline]
    pub fn is_stopped(&self) -> bool {
        // Relaxed: no other memory depends on the order.
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// Counts steps that are about to be done. A step is about the comparison of two short texts,
    /// or 64 bytes that are read.
    ///
    /// # Errors
    /// [`OverBudget`] if the work is stopped or takes too many steps; then it also stops the other
    /// threads.
    #[inline]
    pub fn charge(&self, steps: u64) -> Result<(), OverBudget> {
        if self.is_stopped() {
            return Err(self.error());
        }
        let used = self
            .0
            .used
            .fetch_add(steps, Ordering::Relaxed)
            .saturating_add(steps);
        if used > self.0.steps {
            self.stop();
            return Err(self.error());
        }
        Ok(())
    }

    /// Counts the reading of this many bytes.
    ///
    /// # Errors
    /// As [`Self::charge`].
    #[inline]
    pub fn charge_bytes(&self, bytes: usize) -> Result<(), OverBudget> {
        self.charge(1 + bytes as u64 / 64)
    }

    #[cold]
    fn error(&self) -> OverBudget {
        if self.used() > self.0.steps {
            OverBudget::Steps(self.0.steps)
        } else {
            OverBudget::Stopped
        }
    }

    /// Returns the number of steps that were counted.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Waits for memory and takes it: at most all there is. Returns `None` if the work is stopped
    /// first. Blocks.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Option<MemoryShare> {
        self.0.memory.take(bytes, || self.is_stopped())
    }

    /// Returns the pool that memory is taken from.
    #[must_use]
    pub fn memory(&self) -> &MemoryPool {
        &self.0.memory
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(DEFAULT_STEPS, MemoryPool::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charge_accepts_exactly_the_steps_and_then_stops_all() {
        let budget = Budget::new(10, MemoryPool::default());
        let other = budget.clone();
        assert_eq!(budget.charge(10), Ok(()));
        assert_eq!(budget.charge(1), Err(OverBudget::Steps(10)));
        assert_eq!(other.charge(0), Err(OverBudget::Steps(10)));
        assert!(other.take(1).is_some(), "there is memory");
    }

    #[test]
    fn place_is_given_back_with_the_last_copy() {
        let (place, budget) = (Arc::new(()), Budget::default());
        budget.hold(place.clone());
        let thread = budget.clone();
        drop(budget);
        assert_eq!(Arc::strong_count(&place), 2);
        drop(thread);
        assert_eq!(Arc::strong_count(&place), 1);
    }

    #[test]
    fn stop_ends_the_work_of_all_copies() {
        let budget = Budget::default();
        budget.clone().stop();
        assert_eq!(budget.charge_bytes(1), Err(OverBudget::Stopped));
    }
}
