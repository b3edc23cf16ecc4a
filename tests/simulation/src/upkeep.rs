//! Jobs that publish nothing.

use std::sync::Arc;

use model::text::chain;
use store::Store;
use sync::{Copier, Repair, StoreOrigin, SyncOptions};
use upkeep::{GcOptions, Retention};

use crate::{
    catalogs,
    corruption::{self, DamageKind, Part},
    handle::StoreHandle,
    job::{Done, env},
};

/// Takes one step of collection: condemns, starts to delete, deletes, or ends a round.
pub(crate) async fn collect(handle: StoreHandle, wrong: i64, retention: Retention) -> Done {
    let options = GcOptions {
        retention,
        env: env(&handle, wrong),
        ..GcOptions::default()
    };
    let collected = upkeep::gc(&handle, &options).await;
    let report = collected.map(|report| format!("collected: {report:?}"));
    Done::without_claim(report.map_err(|error| chain(&error)))
}

/// Fetches missing and damaged objects from the other store.
pub(crate) async fn repair([ours, theirs]: [StoreHandle; 2], wrong: i64, catalog: usize) -> Done {
    let options = SyncOptions {
        env: env(&ours, wrong),
        ..SyncOptions::default()
    };
    let theirs: Arc<dyn Store> = Arc::new(theirs);
    let copier = Copier::new(Arc::new(StoreOrigin(theirs)), Arc::new(ours), options);
    let repaired = copier.repair(&catalogs::name(catalog)).await;
    let report = repaired.map(|Repair { repaired, failed, .. }| format!("repaired {repaired:?}, not {failed:?}"));
    Done::without_claim(report.map_err(|error| chain(&error)))
}

pub(crate) async fn remove(handle: StoreHandle, catalog: usize) -> Done {
    let name = catalogs::name(catalog);
    handle.observed.checker().allow_removal(handle.actor, &name);
    let removed = publish::remove(&handle, &name).await;
    let removed = removed.map(|removed| format!("removed: {removed:?}"));
    Done::without_claim(removed.map_err(|error| chain(&error)))
}

/// Damages an object. This is not a process, so no request is sent.
pub(crate) async fn corrupt(handle: StoreHandle, part: Part, damage: DamageKind) -> Done {
    let chance = handle.world.chance.of(("corruption", handle.actor, handle.world.now()));
    let event = corruption::corrupt(&handle.world, &handle.observed, part, damage, chance);
    Done::without_claim(Ok(event))
}
