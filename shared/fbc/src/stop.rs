use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells work on other threads to end, because its result is not wanted any more.
///
/// Copies belong together: what stops one stops all. Parsers look at it after every part of a document.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Stops the work.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if the work is to end.
    #[must_use]
    #[inline]
    pub fn is_stopped(&self) -> bool {
        // Relaxed: no other memory depends on the order.
        self.0.load(Ordering::Relaxed)
    }
}
