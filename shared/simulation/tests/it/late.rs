//! What a copy gets days after it was published is replaced there when the copy gets it, not when it was published.

use std::time::Duration;

use keep::GcSettings;
use simulation::{Faults, Job, Scenario, Side, Step, Writer, run};

const HOUR: u64 = 3_600_000;

fn at(at: u64, job: Job) -> Step {
    Step { at, job }
}

#[test]
fn readers_of_a_copy_keep_what_was_just_replaced() {
    let poll = |version| Job::Poll { catalog: 0, version };
    let sync = Job::Sync {
        catalog: 0,
        rebuild: true,
    };
    let settings = GcSettings {
        generations: 0,
        max_age: Duration::ZERO,
        grace: GcSettings::GRACE_MIN,
        dry_run: false,
    };
    let collect = Job::Collect {
        side: Side::Copy,
        settings,
    };
    let now = 51 * HOUR;
    let writer = |steps| Writer { wrong: 0, steps };
    for seed in 0..10 {
        let scenario = Scenario {
            seed,
            faults: Faults::None,
            prelude: [poll(0), sync.clone(), poll(2)].map(|job| at(0, job)).into(),
            writers: vec![
                writer(vec![at(now + 10_000, sync.clone())]),
                writer(vec![at(now + 20_000, collect.clone())]),
            ],
            readers: vec![(Side::Copy, 40)],
        };
        run(&scenario).unwrap_or_else(|broken| panic!("{broken}"));
    }
}
