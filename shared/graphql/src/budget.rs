use std::sync::atomic::{AtomicU64, Ordering};

/// Estimated memory of a value beside its text, in bytes.
const VALUE_OVERHEAD: u64 = 64;

/// Memory that the values of one answer may take.
#[derive(Debug)]
pub(crate) struct AnswerBudget {
    limit: u64,
    spent: AtomicU64,
}

impl AnswerBudget {
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            spent: AtomicU64::new(0),
        }
    }

    /// Returns false if a value with a text of `bytes` no longer fits.
    pub(crate) fn charge(&self, bytes: usize) -> bool {
        let bytes = bytes as u64 + VALUE_OVERHEAD;
        self.spent.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.limit
    }

    /// Returns true if a value did not fit.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.spent.load(Ordering::Relaxed) > self.limit
    }

    /// Returns the message for the client.
    pub(crate) fn message(&self) -> String {
        too_large(self.limit)
    }
}

/// Returns the message about an answer above `limit` bytes.
pub(crate) fn too_large(limit: u64) -> String {
    format!("the answer is larger than {limit} bytes; ask for less, by limit, package, name or fewer fields")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charge_takes_exactly_the_limit() {
        let budget = AnswerBudget::new(2 * VALUE_OVERHEAD + 10);
        assert!(budget.charge(10) && budget.charge(0));
        assert!(!budget.is_exceeded());
        assert!(!budget.charge(0));
        assert!(budget.is_exceeded());
    }
}
