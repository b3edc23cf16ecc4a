use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Maximum time for what a test waits for. More means that it never comes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds. `what` names it in the failure.
///
/// # Panics
/// If it does not hold within a minute.
pub async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("waited in vain: {what}"));
}
