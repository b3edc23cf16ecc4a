use tokio::task::{JoinError, spawn_blocking};

use crate::Budget;

/// Stops the work of a budget when it is dropped, as a future is whose time is over. Its threads would go on without it, and
/// hold memory that the next work needs.
#[derive(Debug)]
pub struct StopOnDrop(Option<Budget>);

impl StopOnDrop {
    /// Guards the work of this budget.
    #[must_use]
    pub fn new(budget: &Budget) -> Self {
        Self(Some(budget.clone()))
    }

    /// Lets the work go on.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(budget) = &self.0 {
            budget.stop();
        }
    }
}

/// Runs work on foreign data on a blocking thread. If the future is dropped before its end, the work is stopped; the thread
/// keeps the places of the budget until it has ended.
///
/// # Errors
/// Fails if the work panics or the runtime ends.
pub async fn run<T: Send + 'static>(
    budget: &Budget,
    work: impl FnOnce(&Budget) -> T + Send + 'static,
) -> Result<T, JoinError> {
    let guard = StopOnDrop::new(budget);
    let own = budget.clone();
    let result = spawn_blocking(move || work(&own)).await;
    guard.disarm();
    result
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test]
    async fn run_that_is_dropped_stops_its_thread_which_keeps_its_place_to_its_end() {
        let place = Arc::new(());
        let budget = Budget::default();
        budget.hold(place.clone());
        let work = run(&budget, |budget| {
            while budget.charge(1).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(50));
        });
        assert!(timeout(Duration::from_millis(10), work).await.is_err());
        drop(budget);
        assert_eq!(Arc::strong_count(&place), 2, "the thread has not ended");
        while Arc::strong_count(&place) > 1 {
            sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn run_that_ends_leaves_the_budget_to_the_next_work() {
        let budget = Budget::default();
        assert_eq!(run(&budget, |budget| budget.charge(2)).await.unwrap(), Ok(()));
        assert_eq!(run(&budget, |budget| budget.charge(3)).await.unwrap(), Ok(()));
        assert_eq!(budget.used(), 5);
    }
}
