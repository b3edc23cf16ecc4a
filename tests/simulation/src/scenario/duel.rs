//! Writers that publish earlier states again, against collectors that delete them.

use std::iter;

use super::{Job, Step, Writer, moment_of_work, poll, retention, round, sync};
use crate::{catalogs, chance::Chance, fault::Side};

/// Returns publishers of earlier states with collectors, and what is done before.
pub(super) fn duel(chance: Chance) -> (Vec<Step>, Vec<Writer>) {
    let copies = chance.of("copies").one_in(3);
    let prelude = (0..catalogs::MOST as usize).flat_map(|version| {
        let (catalog, rebuild) = (0, true);
        let sync = copies.then_some(Job::Sync { catalog, rebuild });
        iter::once(Job::Poll { catalog, version }).chain(sync)
    });
    let side = if copies { Side::Copy } else { Side::Origin };
    let collectors = chance.of("collectors").pick(&[1, 1, 2]);
    let publishers = chance.of("publishers").pick(&[1, 2, 3]);
    let writers = (0..collectors + publishers).map(|at| {
        let chance = chance.of(("role", at));
        match at {
            _ if at < collectors => collector(chance, side),
            _ if copies => publisher(chance, |chance| sync(chance, 0)),
            _ => publisher(chance, publish_again),
        }
    });
    // A copy needs an origin that changes.
    let origin = copies.then(|| publisher(chance.of("origin"), publish_again));
    let prelude = prelude.map(|job| Step::new(0, job)).collect();
    (prelude, writers.chain(origin).collect())
}

/// Returns a writer that takes all steps of a round in each era.
fn collector(chance: Chance, side: Side) -> Writer {
    let steps = (0..3).flat_map(|era| {
        let chance = chance.of(("era", era));
        // Earlier states are kept sometimes, so that not all are deleted the first time.
        round(
            chance,
            era,
            side,
            &retention(chance, &[0, 0, 16], &[0, 60, 720], &[2]),
        )
    });
    Writer::new(0, steps)
}

/// Returns a writer that meets the collectors of each era at some of their steps.
fn publisher(chance: Chance, job: fn(Chance) -> Job) -> Writer {
    let steps = (0..3).flat_map(|era| {
        (0..2).map(move |at| {
            let chance = chance.of(("era", era)).of(at);
            Step::new(moment_of_work(chance, era, 20_000), job(chance))
        })
    });
    Writer::new(0, steps)
}

fn publish_again(chance: Chance) -> Job {
    if chance.of("back").one_in(2) {
        return Job::Rollback { catalog: 0 };
    }
    poll(chance, 0)
}
