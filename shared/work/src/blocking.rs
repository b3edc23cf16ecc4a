use tokio::task::{JoinError, spawn_blocking};

use crate::Budget;

/// Stops the work of a budget when it is dropped, as a future is whose time is over. Its threads would go on without it, and
/// hold memory that the next work needs.
#[derive(Debug)]
pub struct StopOnDrop(Option<Budget>);

impl StopOnDrop {
    /// Guards the work of this budget.
    #[must_use]
    pub const fn new(budget: Budget) -> Self {
        Self(Some(budget))
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

/// Runs work on foreign data on a blocking thread. If the future is dropped before its end, the work of the budget is stopped.
///
/// # Errors
/// Fails if the work panics or the runtime ends.
#[expect(clippy::disallowed_methods, reason = "this is the place that bounds it")]
pub async fn run<T: Send + 'static>(budget: Budget, work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    let guard = StopOnDrop::new(budget);
    let result = spawn_blocking(work).await;
    guard.disarm();
    result
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    #[tokio::test]
    async fn run_that_is_dropped_stops_its_thread() {
        let (budget, (done, ended)) = (Budget::default(), oneshot::channel());
        let own = budget.clone();
        let work = run(budget, move || {
            while own.charge(1).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            done.send(()).unwrap();
        });
        assert!(timeout(Duration::from_millis(10), work).await.is_err());
        ended.await.unwrap();
    }

    #[tokio::test]
    async fn run_that_ends_leaves_the_budget_to_the_next_work() {
        let budget = Budget::default();
        for _ in 0..2 {
            let own = budget.clone();
            assert_eq!(run(budget.clone(), move || own.charge(2)).await.unwrap(), Ok(()));
        }
        assert_eq!(budget.used(), 4);
    }
}
