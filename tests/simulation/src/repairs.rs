//! Checks about damage: `verify` finds it, and a repair takes everything that the other store still
//! has.

use std::collections::BTreeSet;

use model::{CatalogName, Key};

use crate::after::must_publish;
use crate::catalogs::{self, NAMES};
use crate::fault::Side;
use crate::observed::ObservedStore;
use crate::run::Simulation;
use crate::scenario::Job;

/// Repairs all that can be repaired. The origin may need a new poll, too: `versions` are the last
/// versions of the sources.
///
/// # Errors
/// The object that is not found or not repaired.
pub(crate) async fn repair_all(
    simulation: &Simulation,
    versions: &[Option<usize>],
) -> Result<(), String> {
    // An undamaged store is verified in the end.
    let was_damaged = |side| !simulation.observed(side).checker().damage.is_empty();
    for side in [Side::Origin, Side::Copy]
        .into_iter()
        .filter(|side| was_damaged(*side))
    {
        for catalog in 0..NAMES.len() {
            is_found(simulation.observed(side), &catalogs::name(catalog)).await?;
        }
    }
    let origin = versions
        .iter()
        .enumerate()
        .filter(|_| was_damaged(Side::Origin));
    for (catalog, version) in origin {
        repair(simulation, Side::Origin, catalog).await?;
        if let (Some(version), false) = (version, is_sound(&simulation.origin)) {
            publish_again(simulation, catalog, *version).await?;
        }
    }
    for catalog in (0..versions.len()).filter(|_| was_damaged(Side::Copy)) {
        repair(simulation, Side::Copy, catalog).await?;
    }
    Ok(())
}

/// Repairs the copy once more: the origin may have an object again only after its poll.
///
/// # Errors
/// The object that is not repaired.
pub(crate) async fn repair_copy(simulation: &Simulation, catalog: usize) -> Result<(), String> {
    if is_sound(&simulation.copy) {
        return Ok(());
    }
    repair(simulation, Side::Copy, catalog).await
}

/// Checks that a verification names exactly the damaged objects.
async fn is_found(observed: &ObservedStore, name: &CatalogName) -> Result<(), String> {
    let objects = observed.store.objects();
    let damaged = observed.checker().damaged(name, &objects)?;
    if damaged.is_empty() && observed.checker().history(name).last().is_none() {
        return Ok(());
    }
    let verified = upkeep::verify(&observed.store, name).await;
    let verified = verified.map_err(|error| error.to_string())?;
    let found: BTreeSet<Key> = verified
        .findings
        .into_iter()
        .map(|finding| finding.key)
        .collect();
    // Collection may have stopped between the objects of an earlier publication.
    let may_be_found = |key: &Key| !objects.contains_key(key) || observed.checker().damage.has(key);
    if damaged.is_subset(&found) && found.difference(&damaged).all(may_be_found) {
        return Ok(());
    }
    let side = observed.side;
    Err(format!(
        "of {name} of the {side:?} {damaged:?} is damaged, and verify finds {found:?}"
    ))
}

/// Checks that a repair takes everything that the other store has, and changes no other object.
async fn repair(simulation: &Simulation, side: Side, catalog: usize) -> Result<(), String> {
    let [ours, theirs] = side.first([&simulation.origin, &simulation.copy]);
    let before = ours.store.objects();
    simulation.must(&Job::Repair { side, catalog }).await?;
    let (after, others) = (ours.store.objects(), theirs.store.objects());
    let left = ours.checker().damaged(&catalogs::name(catalog), &after)?;
    // Only a sync can tell what a pointer should be.
    let mut objects = left.iter().filter(|key| !matches!(key, Key::Current(_)));
    if let Some(key) = objects.find(|key| ours.checker().damage.was(key) == others.get(*key)) {
        return Err(format!(
            "{key} of the {side:?} is not repaired, and the other store has it"
        ));
    }
    // A repair may spare condemned objects, or end an old round of collection.
    let mut before = before.iter().filter(|(key, _)| **key != Key::Gc);
    match before
        .find(|(key, bytes)| after.get(*key) != Some(*bytes) && !is_repaired(key, &after, ours))
    {
        Some((key, _)) => Err(format!("{key} of the {side:?} is another after a repair")),
        None => Ok(()),
    }
}

/// True if a repair has made this object sound.
fn is_repaired(
    key: &Key,
    after: &std::collections::BTreeMap<Key, bytes::Bytes>,
    observed: &ObservedStore,
) -> bool {
    let checker = observed.checker();
    after.contains_key(key)
        && !checker.damage.has(key)
        && checker.damage.since(0, |damage| damage == key)
}

fn is_sound(observed: &ObservedStore) -> bool {
    let checker = observed.checker();
    !checker.named().iter().any(|key| checker.damage.has(key))
}

/// Polls the version, another one, and the version again: each publication checks the objects that
/// it needs.
async fn publish_again(
    simulation: &Simulation,
    catalog: usize,
    version: usize,
) -> Result<(), String> {
    let other = catalogs::other_version(version);
    for version in [version, other, version] {
        must_publish(simulation, catalog, version).await?;
    }
    Ok(())
}
