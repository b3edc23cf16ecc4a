//! Every fault at every single operation of scenarios in which nothing else goes wrong.

use std::{
    env,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use catalog_mirror_simulation::{DamageKind, Fault, Faults, Job, Operation, Part, Scenario, Side, Step, Writer, run};
use upkeep::Retention;

const HOUR: u64 = 3_600_000;
/// Time between two steps of collection: two hours and some minutes.
const PHASE: u64 = 125 * 60_000;
/// Number of cases of which an ordinary run takes one. Change it by the variable `EVERY`.
const EVERY: usize = 16;

fn poll(version: usize) -> Job {
    Job::Poll { catalog: 0, version }
}

fn sync(rebuild: bool) -> Job {
    Job::Sync { catalog: 0, rebuild }
}

fn collect(side: Side) -> Job {
    let retention = Retention {
        generations: 0,
        max_age: Duration::ZERO,
        grace: Duration::ZERO,
    };
    Job::Collect { side, retention }
}

fn corrupt(side: Side, part: Part, damage: DamageKind) -> Job {
    Job::Corrupt { side, part, damage }
}

fn remove(side: Side) -> Job {
    Job::Remove { side, catalog: 0 }
}

/// Returns a scenario in which each writer does one job, all at the same time. A collector takes the steps of a whole round, and
/// the others start at its second step, the one that deletes. The prelude is old by then.
fn scenario(prelude: Vec<Job>, writers: Vec<Job>) -> Scenario {
    let step = |at| move |job| Step { at, job };
    Scenario {
        seed: 7,
        faults: Faults::None,
        prelude: prelude.into_iter().map(step(0)).collect(),
        writers: writers
            .into_iter()
            .map(|job| match job {
                Job::Collect { .. } => (0..3)
                    .map(|phase| step(50 * HOUR + phase * PHASE)(job.clone()))
                    .collect(),
                job => vec![step(50 * HOUR + PHASE)(job)],
            })
            .map(|steps| Writer { wrong: 0, steps })
            .collect(),
        readers: Vec::new(),
    }
}

/// Runs a scenario once for each operation of its first writer and each fault of it. Returns the number of runs.
fn every_fault(scenario: &Scenario) -> usize {
    let calm = run(scenario).unwrap_or_else(|broken| panic!("{broken}"));
    let operations = calm.operations.into_iter().filter(|operation| operation.actor == 1);
    let suits = |operation: Operation| {
        let faults = Fault::ALL
            .into_iter()
            .filter(move |fault| fault.suits(operation.kind, &operation.subject));
        faults.collect::<Vec<_>>()
    };
    let cases: Vec<Faults> = operations
        .flat_map(|operation| {
            let faults = suits(operation.clone()).into_iter();
            faults.map(move |fault| Faults::Single(operation.clone(), fault))
        })
        .collect();
    let every = env::var("EVERY").map_or(EVERY, |text| text.parse().expect("it is a number"));
    let cases: Vec<Faults> = cases.into_iter().skip(every / 2).step_by(every).collect();
    let (next, broken) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(faults) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let faults = faults.clone();
            if let Err(found) = run(&Scenario {
                faults,
                ..scenario.clone()
            }) {
                broken.lock().unwrap().push(found);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
    let broken = broken.into_inner().unwrap();
    if let Some(first) = broken.first() {
        panic!("{} of {} runs, such as\n{first}", broken.len(), cases.len());
    }
    println!("{} runs", cases.len());
    cases.len()
}

#[test]
fn every_fault_of_a_first_poll() {
    assert!(every_fault(&scenario(vec![], vec![poll(0)])) > 4);
}

/// The poll publishes again what a collector deletes at the same time.
#[test]
fn every_fault_of_a_poll_beside_a_collection() {
    let prelude = vec![poll(0), poll(1), poll(2), poll(3)];
    let writers = vec![poll(1), collect(Side::Origin)];
    assert!(every_fault(&scenario(prelude, writers)) > 4);
}

#[test]
fn every_fault_of_a_collection_beside_a_poll() {
    let prelude = vec![poll(0), poll(1), poll(2), poll(3)];
    let writers = vec![collect(Side::Origin), poll(1)];
    assert!(every_fault(&scenario(prelude, writers)) > 2);
}

#[test]
fn every_fault_of_a_rollback_beside_a_poll_and_a_collection() {
    let prelude = vec![poll(0), poll(1)];
    let writers = vec![Job::Rollback { catalog: 0 }, poll(2), collect(Side::Origin)];
    assert!(every_fault(&scenario(prelude, writers)) > 1);
}

#[test]
fn every_fault_of_a_copy_beside_a_poll() {
    for rebuild in [true, false] {
        let prelude = vec![poll(0), sync(true), poll(2)];
        assert!(every_fault(&scenario(prelude, vec![sync(rebuild), poll(1)])) > 2);
    }
}

#[test]
fn every_fault_of_a_copy_beside_a_copy_and_a_collection() {
    let prelude = vec![poll(0), sync(true), poll(1), sync(true), poll(2), sync(true), poll(1)];
    let writers = vec![sync(true), sync(false), collect(Side::Copy)];
    assert!(every_fault(&scenario(prelude, writers)) > 2);
}

#[test]
fn every_fault_of_an_import() {
    for all in [true, false] {
        let import = Job::Import { catalog: 0, all };
        assert!(every_fault(&scenario(vec![poll(0)], vec![import])) > 2);
    }
}

/// The state that is published again is there and damaged, each kind of object.
#[test]
fn every_fault_of_a_poll_over_damage() {
    for kind in [DamageKind::Flipped, DamageKind::Lost] {
        let damage = [Part::All, Part::All, Part::All, Part::Shard, Part::Blob, Part::Index];
        let damage = damage.map(|part| corrupt(Side::Origin, part, kind));
        let prelude = [vec![poll(0)], damage.into(), vec![poll(1)]].concat();
        assert!(every_fault(&scenario(prelude, vec![poll(0), collect(Side::Origin)])) > 4);
    }
}

#[test]
fn every_fault_of_a_repair_beside_a_poll_and_a_collection() {
    for (side, publish) in [(Side::Origin, poll(0)), (Side::Copy, sync(true))] {
        let damage = [Part::All, Part::Shard, Part::Snapshot, Part::Blob];
        let damage = damage.map(|part| corrupt(side, part, DamageKind::Flipped));
        let prelude = [vec![poll(0), sync(true), poll(1), sync(true)], damage.into()].concat();
        let repair = Job::Repair { side, catalog: 0 };
        assert!(every_fault(&scenario(prelude, vec![repair, publish, collect(side)])) > 2);
    }
}

/// Nothing is written after it, so what a removal leaves stays until it is collected.
#[test]
fn every_fault_of_a_removal() {
    assert!(every_fault(&scenario(vec![poll(0), poll(1)], vec![remove(Side::Origin)])) > 1);
}

/// The poll writes nothing but a name that is missing.
#[test]
fn every_fault_of_an_unchanged_poll_beside_a_removal() {
    let writers = vec![poll(0), remove(Side::Origin)];
    assert!(every_fault(&scenario(vec![poll(0)], writers)) > 1);
    let writers = vec![sync(true), remove(Side::Copy)];
    assert!(every_fault(&scenario(vec![poll(0), sync(true)], writers)) > 1);
}

#[test]
fn every_fault_of_a_removal_beside_a_poll() {
    let prelude = vec![poll(0), poll(1)];
    let writers = vec![remove(Side::Origin), poll(0)];
    assert!(every_fault(&scenario(prelude.clone(), writers)) > 2);
    let writers = vec![poll(0), remove(Side::Origin), collect(Side::Origin)];
    assert!(every_fault(&scenario(prelude, writers)) > 4);
}

#[test]
fn every_fault_of_a_removal_beside_a_copy() {
    let prelude = vec![poll(0), sync(true), poll(1)];
    let writers = vec![remove(Side::Copy), sync(true), collect(Side::Copy)];
    assert!(every_fault(&scenario(prelude, writers)) > 1);
}
