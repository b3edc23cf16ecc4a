//! Garbage collection, as far as there is time.

use std::time::Duration;

use anyhow::Context;
use keep::{GcReport, GcSettings, gc_until};
use store::Store;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::Deadline;

/// Kept for the removals under way and for the write that ends the sweep, which each take milliseconds, and at worst as
/// long as one attempt at a request may. A sweep that is cut off makes the next publication wait for minutes.
const WIND_DOWN: Duration = Duration::from_secs(30);

/// Collects until the time is over; what is left is done the next time.
pub(crate) async fn collect(store: &dyn Store, settings: &GcSettings, deadline: Deadline) -> anyhow::Result<GcReport> {
    let left = deadline.left();
    let stop = CancellationToken::new();
    let collecting = async {
        let collecting = gc_until(store, settings, &stop);
        tokio::pin!(collecting);
        tokio::select! {
            report = &mut collecting => return report,
            () = sleep(time(left)) => stop.cancel(),
        }
        collecting.await
    };
    let report = timeout(left, collecting)
        .await
        .context("the store did not answer until the time was over, so publications may wait for the sweep to die")??;
    tracing::info!(
        dry_run = report.dry_run,
        stopped = report.stopped,
        objects_kept = report.kept.objects,
        objects_swept = report.swept.objects,
        bytes_swept = report.swept.bytes,
        objects_waiting = report.waiting.objects,
        objects_left = report.left.objects,
        "gc"
    );
    Ok(report)
}

/// After which it is told to stop. A function with little time uses half of it.
fn time(left: Duration) -> Duration {
    left.saturating_sub(WIND_DOWN).max(left / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_time_to_end_and_time_to_work() {
        let after = |seconds| time(Duration::from_secs(seconds)).as_secs();
        assert_eq!([after(298), after(60), after(20), after(0)], [268, 30, 10, 0]);
    }
}
