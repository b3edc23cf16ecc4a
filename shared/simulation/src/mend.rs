//! What must be so about damage: it is found, and repaired by whatever the other store still has.

use std::collections::BTreeSet;

use layout::{CatalogName, Key};

use crate::{
    catalogs::{self, NAMES},
    fault::Side,
    run::Stage,
    scenario::Job,
    site::Site,
};

/// Has everything repaired that can be, the origin by what is polled anew if need be: `versions` are those of the
/// catalogs that have any.
///
/// # Errors
/// What is not found, or not repaired.
pub(crate) async fn mend(stage: &Stage, versions: &[Option<usize>]) -> Result<(), String> {
    // That an undamaged store is sound is looked at in the end.
    let was_damaged = |side| !stage.site(side).witness().rotten.is_empty();
    for side in [Side::Origin, Side::Copy].into_iter().filter(|side| was_damaged(*side)) {
        for catalog in 0..NAMES.len() {
            is_found(stage.site(side), &catalogs::name(catalog)).await?;
        }
    }
    let origin = versions.iter().enumerate().filter(|_| was_damaged(Side::Origin));
    for (catalog, version) in origin {
        repair(stage, Side::Origin, catalog).await?;
        if let (Some(version), false) = (version, is_sound(&stage.origin)) {
            publish_again(stage, catalog, *version).await?;
        }
    }
    for catalog in (0..versions.len()).filter(|_| was_damaged(Side::Copy)) {
        repair(stage, Side::Copy, catalog).await?;
    }
    Ok(())
}

/// What the origin had removed when the copy was repaired, it has again once it was polled.
///
/// # Errors
/// What is not repaired.
pub(crate) async fn mend_copy(stage: &Stage, catalog: usize) -> Result<(), String> {
    if is_sound(&stage.copy) {
        return Ok(());
    }
    repair(stage, Side::Copy, catalog).await
}

/// Whether a verification names exactly what is damaged.
async fn is_found(site: &Site, name: &CatalogName) -> Result<(), String> {
    let objects = site.store.objects();
    let damaged = site.witness().damaged(name, &objects)?;
    if damaged.is_empty() && site.witness().published(name).is_none() {
        return Ok(());
    }
    let verified = keep::verify(&site.store, name).await;
    let verified = verified.map_err(|error| error.to_string())?;
    let found: BTreeSet<String> = verified.findings.into_iter().map(|finding| finding.key).collect();
    let damaged: BTreeSet<String> = damaged.iter().map(ToString::to_string).collect();
    let may_lack = site.witness().may_lack(name);
    let is_lacking = |key: Key| !objects.contains_key(&key) || site.witness().rotten.has(&key);
    let may_be_found = |key: &String| may_lack && Key::parse(key).is_some_and(is_lacking);
    if damaged.is_subset(&found) && found.difference(&damaged).all(may_be_found) {
        return Ok(());
    }
    let side = site.side;
    Err(format!(
        "of {name} of the {side:?} {damaged:?} is damaged, and verify finds {found:?}"
    ))
}

/// A repair takes everything that the other store has, and leaves everything else as it was.
async fn repair(stage: &Stage, side: Side, catalog: usize) -> Result<(), String> {
    let [ours, theirs] = match side {
        Side::Origin => [&stage.origin, &stage.copy],
        Side::Copy => [&stage.copy, &stage.origin],
    };
    let before = ours.store.objects();
    let job = Job::Repair { side, catalog };
    if !stage.calmly(&job).await {
        return Err(format!("{job:?} does not succeed"));
    }
    let (after, others) = (ours.store.objects(), theirs.store.objects());
    let left = ours.witness().damaged(&catalogs::name(catalog), &after)?;
    // What a pointer should be nobody but a sync can tell.
    let mut objects = left.iter().filter(|key| !matches!(key, Key::Current(_)));
    if let Some(key) = objects.find(|key| ours.witness().rotten.was(key) == others.get(*key)) {
        return Err(format!(
            "{key} of the {side:?} is not repaired, and the other store has it"
        ));
    }
    match before
        .iter()
        .find(|(key, bytes)| after.get(*key) != Some(*bytes) && !is_mended(key, &after, ours))
    {
        Some((key, _)) => Err(format!("{key} of the {side:?} is another after a repair")),
        None => Ok(()),
    }
}

/// Whether it is sound by now.
fn is_mended(key: &Key, after: &std::collections::BTreeMap<Key, bytes::Bytes>, site: &Site) -> bool {
    let witness = site.witness();
    after.contains_key(key) && !witness.rotten.has(key) && witness.rotten.since(0, |rotten| rotten == key)
}

fn is_sound(site: &Site) -> bool {
    let witness = site.witness();
    !witness.named().iter().any(|key| witness.rotten.has(key))
}

/// What is published is looked at when something else is, and once more when it comes back.
async fn publish_again(stage: &Stage, catalog: usize, version: usize) -> Result<(), String> {
    let other = (version + 1) % catalogs::MOST as usize;
    for version in [version, other, version] {
        let poll = Job::Poll { catalog, version };
        if !stage.calmly(&poll).await {
            return Err(format!("{poll:?} does not succeed over what is damaged"));
        }
    }
    Ok(())
}
