//! Every fault at every single operation of scenarios in which nothing else goes wrong.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

use rstest::rstest;
use simulation::{DamageKind, Fault, Faults, Job, Part, Scenario, Side, Step, Writer, run};

use super::{HOUR, PHASE, collect, number, poll, run_all, sync};

/// Number of cases of which an ordinary run takes one. Change it by the variable `EVERY`.
const EVERY: u64 = 24;

/// Release of what is held back of the first catalog.
const RELEASE: Job = Job::Release { catalog: 0 };

fn corrupt(side: Side, part: Part, damage: DamageKind) -> Job {
    Job::Corrupt { side, part, damage }
}

fn remove(side: Side) -> Job {
    Job::Remove { side, catalog: 0 }
}

fn follow() -> Job {
    Job::Follow { promote: false }
}

fn import(all: bool) -> Job {
    Job::Import { catalog: 0, all }
}

fn polls(versions: &[usize]) -> Vec<Job> {
    versions.iter().copied().map(poll).collect()
}

/// Returns a scenario in which each writer does one job, all at the same time. A collector takes
/// the steps of a whole round, and the others start at its second step, the one that deletes. The
/// prelude is old by then.
fn scenario(prelude: Vec<Job>, writers: Vec<Job>) -> Scenario {
    Scenario {
        seed: 7,
        faults: Faults::None,
        prelude: prelude.into_iter().map(|job| Step::new(0, job)).collect(),
        writers: writers
            .into_iter()
            .map(|job| {
                let phases = if let Job::Collect { .. } = job {
                    0..3
                } else {
                    1..2
                };
                let steps = phases.map(|phase| Step::new(50 * HOUR + phase * PHASE, job.clone()));
                Writer::new(0, steps)
            })
            .collect(),
        readers: Vec::new(),
    }
}

/// Runs a scenario once for each operation of its first writer and each fault of it. Expects more
/// than `more_than` runs.
fn run_with_every_fault(scenario: &Scenario, more_than: usize) {
    let calm = run(scenario).unwrap_or_else(|broken| panic!("{broken}"));
    let operations = calm
        .operations
        .into_iter()
        .filter(|operation| operation.actor == 1);
    let cases = operations.flat_map(|operation| {
        let faults = Fault::suiting(&operation).into_iter();
        faults.map(move |fault| Faults::Single(operation.clone(), fault))
    });
    let every = number("EVERY", EVERY) as usize;
    let cases = cases.skip(every / 2).step_by(every).map(|faults| Scenario {
        faults,
        ..scenario.clone()
    });
    let runs = run_all(&cases.collect::<Vec<_>>()).len();
    println!("{runs} runs");
    assert!(runs > more_than, "{runs} runs");
}

#[rstest]
#[case::first_poll(vec![], vec![poll(0)], 4)]
// The poll publishes again what a collector deletes at the same time.
#[case::poll_beside_a_collection(polls(&[0, 1, 2, 3]), vec![poll(1), collect(Side::Origin)], 4)]
#[case::collection_beside_a_poll(polls(&[0, 1, 2, 3]), vec![collect(Side::Origin), poll(1)], 2)]
#[case::rollback_beside_a_poll_and_a_collection(
    polls(&[0, 1]), vec![Job::Rollback { catalog: 0 }, poll(2), collect(Side::Origin)], 1
)]
#[case::copy_beside_a_poll(vec![poll(0), sync(true), poll(2)], vec![sync(true), poll(1)], 2)]
#[case::quick_copy_beside_a_poll(vec![poll(0), sync(true), poll(2)], vec![sync(false), poll(1)], 2)]
#[case::copy_beside_a_copy_and_a_collection(
    vec![poll(0), sync(true), poll(1), sync(true), poll(2), sync(true), poll(1)],
    vec![sync(true), sync(false), collect(Side::Copy)],
    2
)]
#[case::import_of_all(vec![poll(0)], vec![import(true)], 2)]
#[case::import(vec![poll(0)], vec![import(false)], 2)]
// Nothing is written after it, so what a removal leaves stays until it is collected.
#[case::removal(polls(&[0, 1]), vec![remove(Side::Origin)], 1)]
// The poll writes nothing but a name that is missing.
#[case::unchanged_poll_beside_a_removal(vec![poll(0)], vec![poll(0), remove(Side::Origin)], 1)]
#[case::unchanged_copy_beside_a_removal(vec![poll(0), sync(true)], vec![sync(true), remove(Side::Copy)], 0)]
#[case::removal_beside_a_poll(polls(&[0, 1]), vec![remove(Side::Origin), poll(0)], 1)]
#[case::poll_beside_a_removal_and_a_collection(
    polls(&[0, 1]), vec![poll(0), remove(Side::Origin), collect(Side::Origin)], 4
)]
// The ring takes a state that only it needs from now on.
#[case::ring_beside_a_collection(
    vec![poll(0), follow(), poll(1), follow(), poll(2)], vec![follow(), collect(Side::Origin)], 2
)]
#[case::collection_beside_a_ring(
    vec![poll(0), follow(), poll(1), follow(), poll(2)], vec![collect(Side::Origin), follow()], 1
)]
#[case::ring_beside_a_poll_and_a_collection(
    vec![poll(0), poll(1), poll(2)], vec![follow(), poll(3), collect(Side::Origin)], 2
)]
#[case::promotion_beside_a_ring_and_a_collection(
    vec![poll(0), follow(), poll(1), poll(2)],
    vec![Job::Follow { promote: true }, follow(), collect(Side::Origin)],
    2
)]
#[case::ring_beside_the_removal_of_its_source(
    vec![poll(0), follow(), poll(1)], vec![follow(), remove(Side::Origin), collect(Side::Origin)], 2
)]
// The version 4 is an accident over the others, and is held.
#[case::poll_of_an_accident_beside_its_release(
    polls(&[0, 4]), vec![poll(4), RELEASE, collect(Side::Origin)], 1
)]
#[case::first_poll_of_an_accident_beside_another_and_its_release(
    polls(&[0]), vec![poll(4), poll(4), RELEASE], 1
)]
#[case::release_beside_polls_of_two_states(polls(&[0, 4]), vec![RELEASE, poll(4), poll(0)], 0)]
#[case::poll_of_what_was_released_beside_a_rollback(
    [polls(&[0, 1, 4]), vec![RELEASE]].concat(),
    vec![poll(4), Job::Rollback { catalog: 0 }, collect(Side::Origin)],
    2
)]
#[case::forced_poll_of_an_accident_beside_a_release(
    polls(&[0, 4]), vec![Job::Force { catalog: 0, version: 4 }, RELEASE, poll(5)], 2
)]
#[case::ring_beside_the_release_of_an_accident(
    [polls(&[0]), vec![follow()], polls(&[4]), vec![RELEASE]].concat(),
    vec![follow(), poll(4), collect(Side::Origin)],
    1
)]
#[case::removal_beside_a_copy(
    vec![poll(0), sync(true), poll(1)], vec![remove(Side::Copy), sync(true), collect(Side::Copy)], 1
)]
fn every_fault_of_a(
    #[case] prelude: Vec<Job>,
    #[case] writers: Vec<Job>,
    #[case] more_than: usize,
) {
    run_with_every_fault(&scenario(prelude, writers), more_than);
}

/// The state that is published again is there and damaged, each kind of object.
#[rstest]
fn every_fault_of_a_poll_over_damage(
    #[values(DamageKind::Flipped, DamageKind::Lost)] kind: DamageKind,
) {
    let damage = [
        Part::All,
        Part::All,
        Part::All,
        Part::Shard,
        Part::Blob,
        Part::Index,
    ];
    let damage = damage.map(|part| corrupt(Side::Origin, part, kind));
    let prelude = [polls(&[0]), damage.into(), polls(&[1])].concat();
    run_with_every_fault(&scenario(prelude, vec![poll(0), collect(Side::Origin)]), 4);
}

#[rstest]
#[case::of_the_origin(Side::Origin, poll(0))]
#[case::of_the_copy(Side::Copy, sync(true))]
fn every_fault_of_a_repair_beside_a_poll_and_a_collection(
    #[case] side: Side,
    #[case] publish: Job,
) {
    let damage = [Part::All, Part::Shard, Part::Snapshot, Part::Blob];
    let damage = damage.map(|part| corrupt(side, part, DamageKind::Flipped));
    let prelude = [
        vec![poll(0), sync(true), poll(1), sync(true)],
        damage.into(),
    ]
    .concat();
    let repair = Job::Repair { side, catalog: 0 };
    run_with_every_fault(&scenario(prelude, vec![repair, publish, collect(side)]), 2);
}
