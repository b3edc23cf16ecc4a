//! The jobs that publish nothing.

use std::sync::Arc;

use keep::GcSettings;
use store::Store;
use sync::{Copier, Repair, Settings, StoreOrigin};

use crate::{
    catalogs,
    fault::Side,
    job::{Done, words},
    line::Line,
    rot::{self, Decay, Part},
};

/// The lines of a job that works on one of the stores.
pub(crate) struct Lines {
    pub(crate) ours: Line,
    pub(crate) theirs: Line,
}

impl Lines {
    pub(crate) fn of(side: Side, [origin, copy]: [Line; 2]) -> Self {
        let (ours, theirs) = match side {
            Side::Origin => (origin, copy),
            Side::Copy => (copy, origin),
        };
        Self { ours, theirs }
    }
}

pub(crate) async fn collect(line: Line, settings: GcSettings) -> Done {
    let collected = keep::gc(&line, &settings).await;
    let report = collected.map(|report| format!("{} removed, {} kept", report.swept.objects, report.kept.objects));
    Done::silent(report.map_err(|error| words(&error)))
}

/// Fetches what is missing or damaged from the other store, whichever was copied from which.
pub(crate) async fn repair(Lines { ours, theirs }: Lines, catalog: usize) -> Done {
    let theirs: Arc<dyn Store> = Arc::new(theirs);
    let copier = Copier::new(Arc::new(StoreOrigin(theirs)), Arc::new(ours), Settings::default());
    let repaired = copier.repair(&catalogs::name(catalog)).await;
    let report = repaired.map(|Repair { repaired, failed, .. }| format!("repaired {repaired:?}, not {failed:?}"));
    Done::silent(report.map_err(|error| words(&error)))
}

pub(crate) async fn remove(line: Line, catalog: usize) -> Done {
    let name = catalogs::name(catalog);
    line.site.witness().allow_removal(line.actor, &name);
    let removed = keep::remove(&line, &name).await;
    let removed = removed.map(|count| format!("{count} objects removed"));
    Done::silent(removed.map_err(|error| words(&error)))
}

/// Not a process, and nobody is asked.
pub(crate) async fn rot(line: Line, what: (Part, Decay)) -> Done {
    let chance = line.world.chance.of(("rot", line.actor, line.world.now()));
    Done::silent(Ok(rot::rot(&line.world, &line.site, what, chance)))
}
