//! Scenarios by chance.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

use simulation::Scenario;

use super::{number, run_all};

/// Number of seeds in an ordinary run. Change it by the variable `SEEDS`; `FIRST_SEED` is the
/// first.
const SEEDS: u64 = 50;

#[test]
fn run_of_every_seed_keeps_all_invariants() {
    let (first, count) = (number("FIRST_SEED", 0), number("SEEDS", SEEDS));
    let scenarios: Vec<Scenario> = (first..first + count).map(Scenario::random).collect();
    let passed = run_all(&scenarios);
    let commits: u64 = passed.iter().map(|(commits, _)| commits).sum();
    let faults: u64 = passed.iter().map(|(_, faults)| faults).sum();
    println!("{count} seeds from {first}: {commits} commits, {faults} faults");
    assert!(commits > count && faults > count, "too little happens");
}
