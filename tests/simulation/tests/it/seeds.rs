//! Scenarios by chance.

use std::{
    env,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use catalog_mirror_simulation::{Broken, Scenario, run};

/// Number of seeds in an ordinary run. Change it by the variable `SEEDS`; `FIRST_SEED` is the first.
const SEEDS: u64 = 400;

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().expect("it is a number"))
}

#[test]
fn run_of_every_seed_keeps_all_invariants() {
    let (first, count) = (number("FIRST_SEED", 0), number("SEEDS", SEEDS));
    let (next, commits, faults) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0));
    let work = || -> Option<Box<Broken>> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return None;
            }
            match run(&Scenario::random(seed)) {
                Ok(passed) => {
                    commits.fetch_add(passed.commits as u64, Ordering::Relaxed);
                    faults.fetch_add(passed.faults, Ordering::Relaxed);
                }
                Err(broken) => return Some(broken),
            }
        }
    };
    let broken: Vec<_> = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .collect()
    });
    if let Some(broken) = broken.iter().min_by_key(|broken| broken.scenario.seed) {
        panic!("{broken}");
    }
    let [commits, faults] = [commits, faults].map(AtomicU64::into_inner);
    println!("{count} seeds from {first}: {commits} commits, {faults} faults");
    assert!(
        commits > count && faults > count,
        "too little happens: {commits} commits, {faults} faults"
    );
}
