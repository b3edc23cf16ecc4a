//! Garbage collection of a server that runs for months.

use std::{sync::Arc, time::Duration};

use keep::{GcSettings, gc_until};
use poll::jittered;
use store::Store;
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

/// Not while the first polls make the machine busy, but also on one that is restarted every day.
const FIRST: Duration = Duration::from_secs(600);
const INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// How long a collection may take to end once the program is told to stop: one that is cut off makes the next publication
/// wait.
const DRAIN: Duration = Duration::from_secs(10);

/// Collects once a day, until `stop`.
pub(crate) fn start(store: Arc<dyn Store>, settings: GcSettings, stop: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut wait = FIRST;
        while stop
            .run_until_cancelled(tokio::time::sleep(jittered(wait)))
            .await
            .is_some()
        {
            collect(&*store, &settings, &stop).await;
            wait = INTERVAL;
        }
    })
}

async fn collect(store: &dyn Store, settings: &GcSettings, stop: &CancellationToken) {
    let collecting = async {
        match gc_until(store, settings, stop).await {
            Ok(report) => tracing::info!(
                objects_kept = report.kept.objects,
                objects_swept = report.swept.objects,
                bytes_swept = report.swept.bytes,
                objects_waiting = report.waiting.objects,
                objects_left = report.left.objects,
                stopped = report.stopped,
                "gc"
            ),
            Err(error) => tracing::error!(error = telemetry::chain(&error), "gc"),
        }
    };
    tokio::pin!(collecting);
    tokio::select! {
        () = &mut collecting => {}
        () = stop.cancelled() => drop(timeout(DRAIN, collecting).await),
    }
}
