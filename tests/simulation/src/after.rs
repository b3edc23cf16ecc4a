//! Checks after the faults are over.

use std::time::Duration;

use model::{CatalogName, Key, Kind};
use serde_json::Value;
use upkeep::Retention;

use crate::{
    catalogs, commands,
    fault::Side,
    invariants::listed_names,
    observed::ObservedStore,
    repairs::{repair_all, repair_copy},
    run::{HARNESS, SETTLED_MS, Simulation},
    scenario::{Job, PHASE_MS, Scenario, Step},
};

/// Number of calls after which collection has come to its end: a round that is under way, and two more.
const STEPS_MAX: usize = 12;

/// Runs everything once more. All of it must succeed and leave two complete stores without garbage.
pub(crate) async fn converge(simulation: &Simulation, scenario: &Scenario) {
    simulation.world.wait(HARNESS, SETTLED_MS).await;
    if let Err(what) = try_converge(simulation, scenario).await {
        simulation.world.broken(HARNESS, format!("afterwards: {what}"));
    }
}

async fn try_converge(simulation: &Simulation, scenario: &Scenario) -> Result<(), String> {
    // A round that is under way could defer a publication, until it is two hours old.
    simulation.world.wait(HARNESS, PHASE_MS).await;
    for observed in [&simulation.origin, &simulation.copy] {
        must_be_listed(simulation, observed).await?;
    }
    let versions = [0, 1].map(|catalog| last_version(scenario, catalog));
    repair_all(simulation, &versions).await?;
    for (catalog, version) in versions.into_iter().enumerate() {
        let Some(version) = version else { continue };
        let poll = Job::Poll { catalog, version };
        must(simulation, &poll).await?;
        must_change_nothing(simulation, &poll, &simulation.origin).await?;
        let sync = Job::Sync { catalog, rebuild: true };
        follow(simulation, catalog, &sync).await?;
        must_change_nothing(simulation, &sync, &simulation.copy).await?;
        repair_copy(simulation, catalog).await?;
        let key = Key::Current(catalogs::name(catalog));
        if simulation.copy.store.objects().get(&key) != simulation.origin.store.objects().get(&key) {
            return Err(format!("{key} of the copy is not that of the origin"));
        }
    }
    for observed in [&simulation.origin, &simulation.copy] {
        must_be_clean(simulation, observed).await?;
    }
    Ok(())
}

/// Reads a store without damage with every command, and checks that collection drops the names of catalogs that are gone.
async fn must_be_listed(simulation: &Simulation, observed: &ObservedStore) -> Result<(), String> {
    if !observed.checker().damage.is_empty() {
        return Ok(());
    }
    commands::read_everything(observed).await?;
    collect(simulation, observed.side, Retention::default()).await?;
    let listed = listed_names(&observed.store.objects());
    let published = commands::published(observed);
    if listed
        .iter()
        .map(String::as_str)
        .eq(published.iter().map(CatalogName::as_str))
    {
        return Ok(());
    }
    let side = observed.side;
    Err(format!(
        "catalogs.json of the {side:?} has {listed:?}, and {published:?} is published"
    ))
}

/// Keeps only what is published.
pub const STRICT: Retention = Retention {
    generations: 0,
    max_age: Duration::ZERO,
    grace: Duration::ZERO,
};

/// Collects until no round is under way and nothing is left to condemn.
async fn collect(simulation: &Simulation, side: Side, retention: Retention) -> Result<(), String> {
    let job = Job::Collect { side, retention };
    for _ in 0..STEPS_MAX {
        simulation.world.wait(HARNESS, PHASE_MS).await;
        let before = state(simulation.observed(side));
        must(simulation, &job).await?;
        let after = state(simulation.observed(side));
        if after == before && after["phase"] != "condemned" && after["phase"] != "deleting" {
            return Ok(());
        }
    }
    Err(format!("the collection of the {side:?} does not come to an end"))
}

/// Returns `gc.json`.
fn state(observed: &ObservedStore) -> Value {
    let bytes = observed.store.objects().remove(&Key::Gc).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Returns the last version of the source of a catalog.
fn last_version(scenario: &Scenario, catalog: usize) -> Option<usize> {
    let steps = scenario.writers.iter().flat_map(|writer| &writer.steps);
    let polls = scenario
        .prelude
        .iter()
        .chain(steps)
        .filter_map(|Step { at, job }| match job {
            Job::Poll { catalog: of, version } if *of == catalog => Some((*at, *version)),
            _ => None,
        });
    polls.max_by_key(|(at, _)| *at).map(|(_, version)| version)
}

/// Syncs a catalog. One that was removed and polled again is another one, which a copy of the first does not accept as its
/// next state. An operator has to remove that from the copy, too.
async fn follow(simulation: &Simulation, catalog: usize, sync: &Job) -> Result<(), String> {
    let name = catalogs::name(catalog);
    let was_removed = simulation.origin.checker().was_removed(&name);
    if was_removed && !simulation.without_faults(sync).await {
        let side = Side::Copy;
        must(simulation, &Job::Remove { side, catalog }).await?;
    }
    must(simulation, sync).await
}

async fn must(simulation: &Simulation, job: &Job) -> Result<(), String> {
    if simulation.without_faults(job).await {
        Ok(())
    } else {
        Err(format!("{job:?} does not succeed"))
    }
}

async fn must_change_nothing(simulation: &Simulation, job: &Job, observed: &ObservedStore) -> Result<(), String> {
    let before = pointers(observed);
    must(simulation, job).await?;
    if pointers(observed) == before {
        Ok(())
    } else {
        Err(format!("{job:?} changes what is up to date"))
    }
}

fn pointers(observed: &ObservedStore) -> Vec<(Key, bytes::Bytes)> {
    let objects = observed.store.objects().into_iter();
    objects.filter(|(key, _)| matches!(key, Key::Current(_))).collect()
}

/// Checks that a round of collection which keeps as little as it can leaves no garbage.
async fn must_be_clean(simulation: &Simulation, observed: &ObservedStore) -> Result<(), String> {
    let side = observed.side;
    collect(simulation, side, STRICT).await?;
    let named = observed.checker().named();
    for key in observed.store.objects().into_keys() {
        // The list of the last round goes with the next one.
        let is_list = matches!(key, Key::Object(Kind::Garbage, _));
        if key.is_immutable() && !is_list && !named.contains(&key) {
            return Err(format!("{key} of the {side:?} is left and no pointer names it"));
        }
    }
    must_verify(observed).await
}

/// Checks both stores with the program's own check, too.
async fn must_verify(observed: &ObservedStore) -> Result<(), String> {
    for (key, _) in pointers(observed) {
        let Key::Current(name) = key else { continue };
        let verified = upkeep::verify(&observed.store, &name)
            .await
            .map_err(|error| error.to_string())?;
        if let Some(finding) = verified.findings.first() {
            return Err(format!(
                "{} of the {:?} {}",
                finding.key, observed.side, finding.problem
            ));
        }
    }
    Ok(())
}
