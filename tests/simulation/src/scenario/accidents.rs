//! A source that makes accidents, and people who let them through or take them back.

use std::iter;

use super::{Job, Step, Writer, moment_of_work, poll, retention, round, sync, which};
use crate::catalogs::{ALL, MOST, RING};
use crate::{chance::Chance, fault::Side};

/// Returns pollers of a source that alternates between two states in each era, people, a follower,
/// a copy and a collector, and what is done before.
pub(super) fn accidents(chance: Chance) -> (Vec<Step>, Vec<Writer>) {
    let catalog = which(chance);
    let version = chance.of("first").number(0..MOST) as usize;
    let mut prelude = vec![Step::new(0, Job::Poll { catalog, version })];
    if chance.of("earlier").one_in(2) {
        prelude.push(Step::new(0, poll(chance.of("earlier"), catalog)));
    }
    let pollers = chance.of("pollers").pick(&[1, 2, 2, 3]);
    let mut writers = Vec::new();
    for at in 0..pollers {
        let wrong = chance
            .of(("clock", at))
            .pick(&[0, 0, 0, 40 * 3600, -40 * 3600]);
        let steps = polls(chance, chance.of(("poller", at)), catalog);
        writers.push(Writer::new(wrong, steps));
    }
    writers.push(Writer::new(0, people(chance.of("people"), catalog)));
    writers.push(Writer::new(0, follower(chance.of("follower"))));
    let copies = (0..3).map(|era| {
        let chance = chance.of(("copy", era));
        let at = moment_of_work(chance, era, 20_000);
        Step::new(at, sync(chance, catalog))
    });
    writers.push(Writer::new(0, copies));
    if chance.of("collector").one_in(2) {
        let rounds = (0..3).flat_map(|era| {
            let chance = chance.of(("collector", era));
            let retention = retention(chance, &[0, 0, 16], &[0, 24, 720], &[2]);
            round(chance, era, Side::Origin, &retention)
        });
        writers.push(Writer::new(0, rounds));
    }
    (prelude, writers)
}

/// Returns polls that find one of the two states of their era each, which all pollers see.
fn polls(source: Chance, chance: Chance, catalog: usize) -> Vec<Step> {
    let steps = (0..3).flat_map(|era| {
        let states = [("one", era), ("other", era)];
        let states = states.map(|state| source.of(state).number(0..ALL) as usize);
        let count = chance.of(("count", era)).number(1..6);
        (0..count).map(move |at| {
            let chance = chance.of((era, at));
            let version = chance.of("state").pick(&states);
            let at = moment_of_work(chance, era, 20_000);
            Step::new(at, Job::Poll { catalog, version })
        })
    });
    steps.collect()
}

/// Returns what people do about the content that is held, or that should have been.
fn people(chance: Chance, catalog: usize) -> Vec<Step> {
    let steps = (0..3).flat_map(|era| {
        let count = chance.of(("count", era)).number(0..4);
        (0..count).map(move |at| {
            let chance = chance.of((era, at));
            let version = chance.of("version").number(0..ALL) as usize;
            let job = match chance.of("what").number(0..8) {
                0 => Job::Force { catalog, version },
                1 => Job::Rollback { catalog },
                2 => Job::Rollback { catalog: RING },
                _ => Job::Release { catalog },
            };
            Step::new(moment_of_work(chance, era, 20_000), job)
        })
    });
    steps.collect()
}

/// Returns polls of the ring, of which a person makes some.
fn follower(chance: Chance) -> Vec<Step> {
    let steps = (0..3).flat_map(|era| {
        (0..2).map(move |at| {
            let chance = chance.of((era, at));
            let promote = chance.of("promote").one_in(5);
            let at = moment_of_work(chance, era, 20_000);
            Step::new(at, Job::Follow { promote })
        })
    });
    let first = Step::new(0, Job::Follow { promote: false });
    iter::once(first).chain(steps).collect()
}
