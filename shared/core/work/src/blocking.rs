use scopeguard::ScopeGuard;
use tokio::task::{JoinError, spawn_blocking};

use crate::Budget;

/// Returns a guard that stops the work of a budget when it is dropped, as a future is whose time is
/// over. The threads of the work would go on without it, and hold memory that the next work needs.
pub fn stop_on_drop(budget: Budget) -> ScopeGuard<Budget, fn(Budget)> {
    scopeguard::guard(budget, |budget| budget.stop())
}

/// Runs work on foreign data on a blocking thread. If the future is dropped before its end, the
/// work of the budget is stopped.
///
/// # Errors
/// Fails if the work panics or the runtime ends.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the place that bounds it"
)]
pub async fn run<T: Send + 'static>(
    budget: Budget,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let guard = stop_on_drop(budget);
    let result = spawn_blocking(work).await;
    // It has ended: the guard must not stop the next work of the budget.
    ScopeGuard::into_inner(guard);
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
            assert_eq!(
                run(budget.clone(), move || own.charge(2)).await.unwrap(),
                Ok(())
            );
        }
        assert_eq!(budget.used(), 4);
    }
}
