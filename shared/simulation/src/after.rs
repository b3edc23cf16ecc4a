//! What must be so once the faults are over.

use std::time::Duration;

use keep::GcSettings;
use layout::Key;

use crate::{
    catalogs,
    fault::Side,
    mend::{mend, mend_copy},
    run::{HOUSE, SETTLED_MS, Stage},
    scenario::{HOUR_MS, Job, Scenario, Step},
    site::Site,
};

/// One more run of everything succeeds and leaves two whole stores with nothing in them that nobody names.
pub(crate) async fn converge(stage: &Stage, scenario: &Scenario) {
    stage.world.wait(HOUSE, SETTLED_MS).await;
    if let Err(what) = try_converge(stage, scenario).await {
        stage.world.broken(HOUSE, format!("afterwards: {what}"));
    }
}

async fn try_converge(stage: &Stage, scenario: &Scenario) -> Result<(), String> {
    let versions = [0, 1].map(|catalog| last_version(scenario, catalog));
    mend(stage, &versions).await?;
    for (catalog, version) in versions.into_iter().enumerate() {
        let Some(version) = version else { continue };
        let poll = Job::Poll { catalog, version };
        must(stage, &poll).await?;
        is_unchanged(stage, &poll, &stage.origin).await?;
        let sync = Job::Sync { catalog, rebuild: true };
        follow(stage, catalog, &sync).await?;
        is_unchanged(stage, &sync, &stage.copy).await?;
        mend_copy(stage, catalog).await?;
        let key = Key::Current(catalogs::name(catalog));
        if stage.copy.store.objects().get(&key) != stage.origin.store.objects().get(&key) {
            return Err(format!("{key} of the copy is not that of the origin"));
        }
    }
    stage.world.wait(HOUSE, 3 * HOUR_MS).await;
    for site in [&stage.origin, &stage.copy] {
        is_clean(stage, site).await?;
    }
    Ok(())
}

/// What the source of a catalog was at last.
fn last_version(scenario: &Scenario, catalog: usize) -> Option<usize> {
    let steps = scenario.writers.iter().flat_map(|writer| &writer.steps);
    let mut polls: Vec<(u64, usize)> = scenario
        .prelude
        .iter()
        .chain(steps)
        .filter_map(|Step { at, job }| match job {
            Job::Poll { catalog: of, version } if *of == catalog => Some((*at, *version)),
            _ => None,
        })
        .collect();
    polls.sort_by_key(|(at, _)| *at);
    polls.last().map(|(_, version)| *version)
}

/// A catalog that was removed and polled again is another one, which a copy of the first does not take for its next state.
/// Whoever runs the copy has to remove that too.
async fn follow(stage: &Stage, catalog: usize, sync: &Job) -> Result<(), String> {
    let name = catalogs::name(catalog);
    let was_removed = stage.origin.witness().was_removed(&name);
    if was_removed && !stage.calmly(sync).await {
        let side = Side::Copy;
        must(stage, &Job::Remove { side, catalog }).await?;
    }
    must(stage, sync).await
}

async fn must(stage: &Stage, job: &Job) -> Result<(), String> {
    if stage.calmly(job).await {
        Ok(())
    } else {
        Err(format!("{job:?} does not succeed"))
    }
}

async fn is_unchanged(stage: &Stage, job: &Job, site: &Site) -> Result<(), String> {
    let before = pointers(site);
    must(stage, job).await?;
    if pointers(site) == before {
        Ok(())
    } else {
        Err(format!("{job:?} changes what is up to date"))
    }
}

fn pointers(site: &Site) -> Vec<(Key, bytes::Bytes)> {
    let objects = site.store.objects().into_iter();
    objects.filter(|(key, _)| matches!(key, Key::Current(_))).collect()
}

/// After a garbage collection that keeps as little as it can.
async fn is_clean(stage: &Stage, site: &Site) -> Result<(), String> {
    let settings = GcSettings {
        generations: 0,
        max_age: Duration::ZERO,
        grace: GcSettings::GRACE_MIN,
        dry_run: false,
    };
    let side = site.side;
    must(stage, &Job::Collect { side, settings }).await?;
    let named = site.witness().named();
    for key in site.store.objects().into_keys() {
        let is_content = key.is_immutable() || matches!(key, Key::Intent(..));
        if is_content && !named.contains(&key) {
            return Err(format!("{key} of the {side:?} is left and nothing names it"));
        }
    }
    is_verified(site).await
}

/// By the program's own check too.
async fn is_verified(site: &Site) -> Result<(), String> {
    for (key, _) in pointers(site) {
        let Key::Current(name) = key else { continue };
        let verified = keep::verify(&site.store, &name)
            .await
            .map_err(|error| error.to_string())?;
        if let Some(finding) = verified.findings.first() {
            return Err(format!("{} of the {:?} {}", finding.key, site.side, finding.problem));
        }
    }
    Ok(())
}
