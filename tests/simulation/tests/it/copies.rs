//! Clients of a copy that gets a state days after it was published.

use simulation::{Faults, Scenario, Side, Step, Writer, run};

use super::{HOUR, PHASE, collect, poll, sync};

/// The copy replaces a state when it gets the next one, not when that was published: clients of the
/// copy have their two hours from then.
#[test]
fn gc_of_a_copy_keeps_what_its_clients_still_read() {
    let now = 51 * HOUR;
    for seed in 0..10 {
        let collector =
            (0..3).map(|phase| Step::new(now + 20_000 + phase * PHASE, collect(Side::Copy)));
        let scenario = Scenario {
            seed,
            faults: Faults::None,
            prelude: [poll(0), sync(true), poll(2)]
                .map(|job| Step::new(0, job))
                .into(),
            writers: vec![
                Writer::new(0, [Step::new(now + 10_000, sync(true))]),
                Writer::new(0, collector),
            ],
            readers: vec![(Side::Copy, 40)],
        };
        run(&scenario).unwrap_or_else(|broken| panic!("{broken}"));
    }
}
