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

use keep::GcSettings;
use simulation::{Decay, Fault, Faults, Job, Operation, Part, Scenario, Side, Step, Writer, run};

const HOUR: u64 = 3_600_000;
/// Of so many cases an ordinary run takes one.
const EVERY: usize = 16;

fn poll(version: usize) -> Job {
    Job::Poll { catalog: 0, version }
}

fn sync(rebuild: bool) -> Job {
    Job::Sync { catalog: 0, rebuild }
}

fn collect(side: Side) -> Job {
    let settings = GcSettings {
        generations: 0,
        max_age: Duration::ZERO,
        grace: GcSettings::GRACE_MIN,
        dry_run: false,
    };
    Job::Collect { side, settings }
}

fn rot(side: Side, part: Part, decay: Decay) -> Job {
    Job::Rot { side, part, decay }
}

fn remove(side: Side) -> Job {
    Job::Remove { side, catalog: 0 }
}

/// Each writer does one thing, all at the same time. What was done before is old by then.
fn scenario(prelude: Vec<Job>, writers: Vec<Job>) -> Scenario {
    let step = |at| move |job| Step { at, job };
    Scenario {
        seed: 7,
        faults: Faults::None,
        prelude: prelude.into_iter().map(step(0)).collect(),
        writers: writers
            .into_iter()
            .map(step(50 * HOUR))
            .map(|step| Writer {
                wrong: 0,
                steps: vec![step],
            })
            .collect(),
        readers: Vec::new(),
    }
}

/// Runs a scenario once for each operation of its first writer and each fault that suits it, and counts the runs.
fn every_fault(scenario: &Scenario) -> usize {
    let calm = run(scenario).unwrap_or_else(|broken| panic!("{broken}"));
    let operations = calm.operations.into_iter().filter(|operation| operation.actor == 1);
    let suits = |operation: Operation| {
        let faults = Fault::ALL.into_iter().filter(move |fault| fault.suits(operation.kind));
        faults.collect::<Vec<_>>()
    };
    let cases: Vec<Faults> = operations
        .flat_map(|operation| {
            let faults = suits(operation.clone()).into_iter();
            faults.map(move |fault| Faults::Single(operation.clone(), fault))
        })
        .collect();
    // Seldom run as a whole: `EVERY=1` does.
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
fn of_a_first_poll() {
    assert!(every_fault(&scenario(vec![], vec![poll(0)])) > 4);
}

/// With what nothing names any more, and a garbage collection that removes it at the same time.
#[test]
fn of_a_poll_next_to_a_collection() {
    let prelude = vec![poll(0), poll(1), poll(2), poll(3)];
    let writers = vec![poll(1), collect(Side::Origin)];
    assert!(every_fault(&scenario(prelude, writers)) > 4);
}

#[test]
fn of_a_collection_next_to_a_poll() {
    let prelude = vec![poll(0), poll(1), poll(2), poll(3)];
    let writers = vec![collect(Side::Origin), poll(1)];
    assert!(every_fault(&scenario(prelude, writers)) > 2);
}

#[test]
fn of_a_rollback_next_to_a_poll_and_a_collection() {
    let prelude = vec![poll(0), poll(1)];
    let writers = vec![Job::Rollback { catalog: 0 }, poll(2), collect(Side::Origin)];
    assert!(every_fault(&scenario(prelude, writers)) > 1);
}

#[test]
fn of_a_copy_next_to_a_poll() {
    for rebuild in [true, false] {
        let prelude = vec![poll(0), sync(true), poll(2)];
        assert!(every_fault(&scenario(prelude, vec![sync(rebuild), poll(1)])) > 2);
    }
}

#[test]
fn of_a_copy_next_to_a_copy_and_a_collection() {
    let prelude = vec![poll(0), sync(true), poll(1), sync(true), poll(2), sync(true), poll(1)];
    let writers = vec![sync(true), sync(false), collect(Side::Copy)];
    assert!(every_fault(&scenario(prelude, writers)) > 2);
}

#[test]
fn of_an_import() {
    for whole in [true, false] {
        let import = Job::Import { catalog: 0, whole };
        assert!(every_fault(&scenario(vec![poll(0)], vec![import])) > 2);
    }
}

/// What is published again lies there and is damaged, in every form.
#[test]
fn of_a_poll_over_damage() {
    for decay in [Decay::Flipped, Decay::Lost] {
        let damage = [
            Part::Whole,
            Part::Whole,
            Part::Whole,
            Part::Shard,
            Part::Blob,
            Part::Index,
        ];
        let damage = damage.map(|part| rot(Side::Origin, part, decay));
        let prelude = [vec![poll(0)], damage.into(), vec![poll(1)]].concat();
        assert!(every_fault(&scenario(prelude, vec![poll(0), collect(Side::Origin)])) > 4);
    }
}

#[test]
fn of_a_repair_next_to_a_poll_and_a_collection() {
    for (side, publish) in [(Side::Origin, poll(0)), (Side::Copy, sync(true))] {
        let damage = [Part::Whole, Part::Shard, Part::Snapshot, Part::Blob];
        let damage = damage.map(|part| rot(side, part, Decay::Flipped));
        let prelude = [vec![poll(0), sync(true), poll(1), sync(true)], damage.into()].concat();
        let repair = Job::Repair { side, catalog: 0 };
        assert!(every_fault(&scenario(prelude, vec![repair, publish, collect(side)])) > 2);
    }
}

#[test]
fn of_a_removal_next_to_a_poll() {
    let prelude = vec![poll(0), poll(1)];
    let writers = vec![remove(Side::Origin), poll(0)];
    assert!(every_fault(&scenario(prelude.clone(), writers)) > 2);
    let writers = vec![poll(0), remove(Side::Origin), collect(Side::Origin)];
    assert!(every_fault(&scenario(prelude, writers)) > 4);
}

#[test]
fn of_a_removal_next_to_a_copy() {
    let prelude = vec![poll(0), sync(true), poll(1)];
    let writers = vec![remove(Side::Copy), sync(true), collect(Side::Copy)];
    assert!(every_fault(&scenario(prelude, writers)) > 2);
}
