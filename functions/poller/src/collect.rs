//! Runs one step of garbage collection within the time of the invocation.

use std::time::Duration;

use anyhow::Context;
use store::Store;
use tokio::time::timeout;
use upkeep::{GcOptions, GcReport};

use crate::Deadline;

/// Time that is reserved for the batch of deletes in progress and for the answer. A run that is cut off does no harm, because
/// the next one continues.
const WIND_DOWN: Duration = Duration::from_secs(30);

/// Takes the step that is due. Stops deleting early enough to return its report.
pub(crate) async fn collect(store: &dyn Store, options: GcOptions, deadline: Deadline) -> anyhow::Result<GcReport> {
    let left = deadline.left();
    let options = GcOptions {
        time: Some(working_time(left)),
        ..options
    };
    // The limit of the deletes does not bound a single request: a store that hangs would use up the invocation.
    let collecting = timeout(left, upkeep::gc(store, &options)).await;
    Ok(collecting.context("the store did not answer until the time was over")??)
}

/// Returns the time for deletes: all but [`WIND_DOWN`], and at least half of `left`.
fn working_time(left: Duration) -> Duration {
    left.saturating_sub(WIND_DOWN).max(left / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_time_leaves_thirty_seconds_or_half() {
        let after = |seconds| working_time(Duration::from_secs(seconds)).as_secs();
        assert_eq!([after(298), after(60), after(20), after(0)], [268, 30, 10, 0]);
    }
}
