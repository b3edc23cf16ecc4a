//! A seed tells everything.

use simulation::{Scenario, run};

#[test]
fn the_same_seed_twice_is_the_same_run() {
    for seed in 1000..1020 {
        let [one, other] = [(); 2].map(|()| run(&Scenario::random(seed)).unwrap());
        for (one, other) in one.events.iter().zip(&other.events) {
            assert_eq!(one, other, "seed {seed}");
        }
        assert_eq!(
            (one.events.len(), one.faults),
            (other.events.len(), other.faults),
            "seed {seed}"
        );
    }
}

#[test]
fn other_seeds_are_other_runs() {
    let events = |seed| run(&Scenario::random(seed)).unwrap().events;
    assert_ne!(events(1), events(2));
}
