use std::sync::atomic::{AtomicUsize, Ordering};

use work::{Budget, OverBudget};

/// Default for the maximum size of the texts of an answer, in bytes. The largest of a real catalog
/// has some megabytes.
const ANSWER_BYTES: usize = 128 << 20;

/// Bounds of the work for one answer: its steps, its end, and the size of what is found.
///
/// An answer may be larger than the square of what it is about: each of many heads has a way of its
/// own, and a range that all entries have is an upgrade from each of them to each other.
#[derive(Debug)]
pub struct Bounds {
    /// Steps and end of the work.
    pub budget: Budget,
    answer_bytes: usize,
    used_bytes: AtomicUsize,
}

/// Bound that an answer exceeds.
#[derive(Debug, thiserror::Error)]
pub enum Exceeded {
    /// The work takes too many steps, or is not wanted any more.
    #[error(transparent)]
    Work(#[from] OverBudget),
    /// The answer is too large.
    #[error("the answer exceeds the limit of {0} bytes: ask for one channel, version or operator")]
    Answer(usize),
}

impl Bounds {
    /// Creates bounds for an answer of this many bytes.
    pub fn new(budget: Budget, answer_bytes: usize) -> Self {
        Self {
            budget,
            answer_bytes,
            used_bytes: AtomicUsize::new(0),
        }
    }

    /// Counts a text of the answer.
    ///
    /// # Errors
    /// An answer that is too large.
    pub fn answer(&self, bytes: usize) -> Result<(), Exceeded> {
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.answer_bytes {
            return Err(Exceeded::Answer(self.answer_bytes));
        }
        Ok(())
    }

    /// Returns the number of bytes of the answer that were counted.
    pub fn answer_used(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::new(Budget::default(), ANSWER_BYTES)
    }
}
