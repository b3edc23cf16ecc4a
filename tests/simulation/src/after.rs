//! Checks after the faults are over.

use std::{collections::BTreeSet, time::Duration};

use model::{Key, Kind};
use serde_json::Value;
use upkeep::Retention;

use crate::catalogs::{self, RING};
use crate::commands;
use crate::fault::Side;
use crate::invariants::listed_names;
use crate::observed::ObservedStore;
use crate::repairs::{repair_all, repair_copy};
use crate::run::{HARNESS, SETTLED_MS, Simulation};
use crate::scenario::{Job, PHASE_MS, Scenario, Step, steps};

/// Number of calls after which collection has come to its end: a round that is under way, and two
/// more.
const STEPS_MAX: usize = 12;

/// Runs everything once more. All of it must succeed and leave two complete stores without garbage.
pub(crate) async fn converge(simulation: &Simulation, scenario: &Scenario) {
    simulation.world.wait(HARNESS, SETTLED_MS).await;
    if let Err(what) = try_converge(simulation, scenario).await {
        simulation
            .world
            .broken(HARNESS, format!("afterwards: {what}"));
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
        must_publish(simulation, catalog, version).await?;
        must_change_nothing(simulation, &poll, &simulation.origin).await?;
        let sync = Job::Sync {
            catalog,
            rebuild: true,
        };
        follow(simulation, catalog, &sync).await?;
        must_change_nothing(simulation, &sync, &simulation.copy).await?;
        repair_copy(simulation, catalog).await?;
        let name = catalogs::name(catalog);
        if simulation.copy.pointers().get(&name) != simulation.origin.pointers().get(&name) {
            return Err(format!(
                "the pointer of {name} of the copy is not that of the origin"
            ));
        }
    }
    follow_ring(simulation, versions[0].is_some()).await?;
    for observed in [&simulation.origin, &simulation.copy] {
        must_be_clean(simulation, observed).await?;
    }
    Ok(())
}

/// Polls a version of a catalog. If it is an accident over what is published, a person lets it
/// through.
pub(crate) async fn must_publish(
    simulation: &Simulation,
    catalog: usize,
    version: usize,
) -> Result<(), String> {
    let poll = Job::Poll { catalog, version };
    // It stays held and is not told again, unless its time ends now.
    for _ in 0..2 {
        if simulation.must(&poll).await.is_ok() {
            return Ok(());
        }
    }
    simulation.must(&Job::Release { catalog }).await?;
    simulation.must(&poll).await
}

/// Polls the ring, if it was published and its source is. What a disk took from its older states no
/// source has any more, so a damaged ring is removed, as an operator would.
async fn follow_ring(simulation: &Simulation, has_source: bool) -> Result<(), String> {
    let name = catalogs::name(RING);
    let origin = &simulation.origin;
    if !origin.pointers().contains_key(&name) {
        return Ok(());
    }
    if !origin.checker().damage.is_empty() {
        let side = Side::Origin;
        let catalog = RING;
        return simulation.must(&Job::Remove { side, catalog }).await;
    }
    if !has_source {
        return Ok(());
    }
    let follow = Job::Follow { promote: false };
    simulation.must(&follow).await?;
    must_change_nothing(simulation, &follow, origin).await
}

/// Reads a store without damage with every command, and checks that collection drops the names of
/// catalogs that are gone.
async fn must_be_listed(simulation: &Simulation, observed: &ObservedStore) -> Result<(), String> {
    if !observed.checker().damage.is_empty() {
        return Ok(());
    }
    commands::read_everything(observed).await?;
    collect(simulation, observed.side, Retention::default()).await?;
    let listed = listed_names(&observed.store.objects());
    let published: BTreeSet<String> = observed
        .pointers()
        .into_keys()
        .map(|name| name.to_string())
        .collect();
    if listed == published {
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
        simulation.must(&job).await?;
        let after = state(simulation.observed(side));
        if after == before && after["phase"] != "condemned" && after["phase"] != "deleting" {
            return Ok(());
        }
    }
    Err(format!(
        "the collection of the {side:?} does not come to an end"
    ))
}

/// Returns `gc.json`.
fn state(observed: &ObservedStore) -> Value {
    let bytes = observed
        .store
        .objects()
        .remove(&Key::Gc)
        .unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Returns the last version of the source of a catalog.
fn last_version(scenario: &Scenario, catalog: usize) -> Option<usize> {
    let steps = scenario.prelude.iter().chain(steps(&scenario.writers));
    let polls = steps.filter_map(|Step { at, job }| match job {
        Job::Poll {
            catalog: of,
            version,
        }
        | Job::Force {
            catalog: of,
            version,
        } if *of == catalog => Some((*at, *version)),
        _ => None,
    });
    polls.max_by_key(|(at, _)| *at).map(|(_, version)| version)
}

/// Syncs a catalog. One that was removed and polled again is another one, which a copy of the first
/// does not accept as its next state. An operator has to remove that from the copy, too.
async fn follow(simulation: &Simulation, catalog: usize, sync: &Job) -> Result<(), String> {
    let name = catalogs::name(catalog);
    let was_removed = simulation.origin.checker().history(&name).has_ended();
    if was_removed && simulation.must(sync).await.is_err() {
        let side = Side::Copy;
        simulation.must(&Job::Remove { side, catalog }).await?;
    }
    simulation.must(sync).await
}

async fn must_change_nothing(
    simulation: &Simulation,
    job: &Job,
    observed: &ObservedStore,
) -> Result<(), String> {
    let before = observed.pointers();
    simulation.must(job).await?;
    if observed.pointers() == before {
        Ok(())
    } else {
        Err(format!("{job:?} changes what is up to date"))
    }
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
            return Err(format!(
                "{key} of the {side:?} is left and no pointer names it"
            ));
        }
    }
    // The program's own check must agree.
    for name in observed.pointers().keys() {
        let verified = upkeep::verify(&observed.store, name).await;
        let verified = verified.map_err(|error| error.to_string())?;
        if let Some(finding) = verified.findings.first() {
            return Err(format!(
                "{} of the {side:?} {}",
                finding.key, finding.problem
            ));
        }
    }
    Ok(())
}
