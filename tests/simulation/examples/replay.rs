//! Runs seeds of the simulation and prints what happened: `replay SEED...`
#![expect(clippy::print_stdout, reason = "what it prints is its result")]

use simulation::{Scenario, run};

fn main() {
    for seed in std::env::args().skip(1) {
        let seed = seed.parse().expect("a seed is a number");
        match run(&Scenario::random(seed)) {
            Err(broken) => println!("{broken}"),
            Ok(passed) => {
                passed.events.iter().for_each(|event| println!("{event}"));
                println!(
                    "seed {seed} holds: {} commits, {} faults",
                    passed.commits, passed.faults
                );
            }
        }
    }
}
