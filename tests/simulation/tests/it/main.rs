//! Hundreds of seeds, every fault at every operation, and each run twice.

mod copies;
mod determinism;
mod seeds;
mod systematic;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use simulation::{Job, STRICT, Scenario, Side, run};

const HOUR: u64 = 3_600_000;
/// Time between two steps of collection: two hours and some minutes.
const PHASE: u64 = 125 * 60_000;

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().expect("it is a number"))
}

fn poll(version: usize) -> Job {
    Job::Poll {
        catalog: 0,
        version,
    }
}

fn sync(rebuild: bool) -> Job {
    Job::Sync {
        catalog: 0,
        rebuild,
    }
}

fn collect(side: Side) -> Job {
    let retention = STRICT;
    Job::Collect { side, retention }
}

/// Runs all scenarios on all cores, and returns the numbers of their commits and faults. Fails with
/// the first one in which an invariant does not hold.
fn run_all(scenarios: &[Scenario]) -> Vec<(u64, u64)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let next = || scenarios.get(next.fetch_add(1, Ordering::Relaxed));
        let ended = std::iter::from_fn(next).map(run);
        let counted = ended.map(|ended| ended.map(|passed| (passed.commits as u64, passed.faults)));
        counted.collect::<Vec<_>>()
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let broken = ended.iter().filter_map(|ended| ended.as_ref().err());
    if let Some(first) = broken.clone().min_by_key(|broken| broken.scenario.seed) {
        panic!(
            "{} of {} runs, such as\n{first}",
            broken.count(),
            scenarios.len()
        );
    }
    ended.into_iter().map(Result::unwrap).collect()
}
