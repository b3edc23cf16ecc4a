//! Clients of a copy that gets a state days after it was published.

use std::time::Duration;

use catalog_mirror_simulation::{Faults, Job, Scenario, Side, Step, Writer, run};
use upkeep::Retention;

const HOUR: u64 = 3_600_000;
/// Time between two steps of collection: two hours and some minutes.
const PHASE: u64 = 125 * 60_000;

fn at(at: u64, job: Job) -> Step {
    Step { at, job }
}

/// The copy replaces a state when it gets the next one, not when that was published: clients of the copy have their two
/// hours from then.
#[test]
fn gc_of_a_copy_keeps_what_its_clients_still_read() {
    let poll = |version| Job::Poll { catalog: 0, version };
    let sync = Job::Sync {
        catalog: 0,
        rebuild: true,
    };
    let collect = Job::Collect {
        side: Side::Copy,
        retention: Retention {
            generations: 0,
            max_age: Duration::ZERO,
            grace: Duration::ZERO,
        },
    };
    let now = 51 * HOUR;
    let writer = |steps| Writer { wrong: 0, steps };
    for seed in 0..10 {
        let collector = (0..3).map(|phase| at(now + 20_000 + phase * PHASE, collect.clone()));
        let scenario = Scenario {
            seed,
            faults: Faults::None,
            prelude: [poll(0), sync.clone(), poll(2)].map(|job| at(0, job)).into(),
            writers: vec![
                writer(vec![at(now + 10_000, sync.clone())]),
                writer(collector.collect()),
            ],
            readers: vec![(Side::Copy, 40)],
        };
        run(&scenario).unwrap_or_else(|broken| panic!("{broken}"));
    }
}
