use std::{sync::Arc, time::Duration};

use publish::jittered;
use store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{GcMetrics, GcOptions, Retention, gc};

/// Wait before the first run. The first polls keep the machine busy.
const FIRST_WAIT: Duration = Duration::from_secs(600);

/// Time between two runs. Each takes the one step that is due; deletes must come within 30 minutes of their marking, which
/// the same run does.
const INTERVAL: Duration = Duration::from_secs(30 * 60);

/// Starts a task that collects garbage until `stop` is cancelled. A run that is cut off leaves nothing to clean up: the next
/// one, in any process, continues.
pub fn collect_regularly(
    store: Arc<dyn Store>,
    retention: Retention,
    metrics: GcMetrics,
    stop: CancellationToken,
) -> JoinHandle<()> {
    let options = GcOptions {
        retention,
        ..GcOptions::default()
    };
    let collecting = async move {
        let mut wait = FIRST_WAIT;
        // Jittered: mirrors that were started together must not list one bucket together.
        loop {
            tokio::time::sleep(jittered(wait)).await;
            let collected = gc(&*store, &options).await;
            metrics.count(&collected);
            if let Err(error) = collected {
                tracing::error!(error = model::text::chain(&error), "cannot collect garbage");
            }
            wait = INTERVAL;
        }
    };
    let collecting = async move {
        stop.run_until_cancelled(collecting).await;
    };
    tokio::spawn(collecting.instrument(tracing::info_span!("gc")))
}
