//! A run is a function of its seed.

use simulation::{Scenario, run};

#[test]
fn run_of_one_seed_twice_has_equal_events() {
    for seed in 1000..1005 {
        let [one, other] = [(); 2].map(|()| run(&Scenario::random(seed)).unwrap());
        for (one, other) in one.events.iter().zip(&other.events) {
            assert_eq!(one, other, "seed {seed}");
        }
        assert_eq!(one.events.len(), other.events.len(), "seed {seed}");
        assert_eq!(one.faults, other.faults, "seed {seed}");
    }
}

#[test]
fn run_of_another_seed_has_other_events() {
    let events = |seed| run(&Scenario::random(seed)).unwrap().events;
    assert_ne!(events(1), events(4));
    // Both are duels.
    let writers = |seed| Scenario::random(seed).writers;
    assert_ne!(writers(1), writers(4));
}
