use futures_util::future::join_all;
use layout::Key;
use store::{Listed, Store, StoreError};
use tokio_util::sync::CancellationToken;

use super::{GcError, GcReport, hold::Hold, roots::Roots};

/// How many objects are removed side by side.
const SIDE_BY_SIDE: usize = 16;
/// How many objects are removed before publications that wait get their turn: a few seconds' worth.
const BATCH: usize = 1000;

/// Removes the condemned, save for what has been named since. What is left when it has to stop is counted as such.
pub(super) async fn sweep(
    store: &dyn Store,
    mut condemned: Vec<Listed>,
    roots: &mut Roots,
    stop: &CancellationToken,
    report: &mut GcReport,
) -> Result<(), GcError> {
    while !condemned.is_empty() {
        let Some(hold) = Hold::take(store, stop).await? else {
            break;
        };
        let marked = stop.run_until_cancelled(roots.read(store)).await.transpose();
        if let Ok(Some(())) = marked {
            // Not released when it fails: a removal that was given up may still happen, and whoever publishes has to
            // wait until it cannot any more.
            stretch(store, &hold, &mut condemned, roots, stop, report).await?;
        }
        hold.release(store).await?;
        marked?;
    }
    condemned.iter().for_each(|object| report.left.add(object.size));
    Ok(())
}

/// What can be removed while the hold lasts.
async fn stretch(
    store: &dyn Store,
    hold: &Hold,
    condemned: &mut Vec<Listed>,
    roots: &Roots,
    stop: &CancellationToken,
    report: &mut GcReport,
) -> Result<(), StoreError> {
    let mut left = BATCH;
    while left > 0 && !condemned.is_empty() && !hold.is_over() && !stop.is_cancelled() {
        let next = condemned.split_off(condemned.len().saturating_sub(SIDE_BY_SIDE));
        left = left.saturating_sub(next.len());
        let (spared, doomed): (Vec<_>, Vec<_>) = next.into_iter().partition(|object| roots.names(&object.key));
        spared.iter().for_each(|object| report.kept.add(object.size));
        // All of them are waited for, whatever becomes of one.
        let removed = join_all(doomed.iter().map(|object| remove(store, object))).await;
        for (object, removed) in doomed.iter().zip(removed) {
            removed?;
            count(object, report);
        }
    }
    Ok(())
}

async fn remove(store: &dyn Store, object: &Listed) -> Result<(), StoreError> {
    tracing::debug!(key = %object.key, size = object.size, "nothing names it");
    store.delete(&object.key).await
}

pub(super) fn count(removed: &Listed, report: &mut GcReport) {
    report.swept.add(removed.size);
    if matches!(removed.key, Key::Snapshot(..)) {
        report.expired += 1;
    }
}
