use layout::Key;
use store::{Listed, Store, StoreError};
use tokio_util::sync::CancellationToken;

use super::{
    GcError, GcReport,
    hold::{Hold, SIDE_BY_SIDE},
    roots::Roots,
};

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
            // Not released when it fails.
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
        hold.delete(store, doomed.iter().map(told)).await?;
        doomed.iter().for_each(|object| count(object, report));
    }
    Ok(())
}

fn told(object: &Listed) -> &Key {
    tracing::debug!(key = %object.key, size = object.size, "nothing names it");
    &object.key
}

pub(super) fn count(removed: &Listed, report: &mut GcReport) {
    report.swept.add(removed.size);
    if matches!(removed.key, Key::Snapshot(..)) {
        report.expired += 1;
    }
}
