//! Writers that do all kinds of jobs.

use super::{Job, Step, Writer, moment_of_work, poll, retention, round, side, sync, which};
use crate::chance::Chance;

/// Largest error of a clock that requests to S3 allow, in seconds.
const SKEW: u64 = 15 * 60;
/// Error of a clock that was never set, in seconds.
const DAYS: u64 = 3 * 24 * 3600;

/// Returns up to four writers that do all kinds of jobs, and what is done before.
pub(super) fn crowd(chance: Chance) -> (Vec<Step>, Vec<Writer>) {
    let writers = chance.of("writers").number(1..5);
    let writers = (0..writers).map(|at| writer(chance.of(("writer", at))));
    (prelude(chance.of("prelude")), writers.collect())
}

fn prelude(chance: Chance) -> Vec<Step> {
    let polls = chance.of("polls").number(0..4);
    let polls = (0..polls).map(|at| chance.of(at));
    let polls = polls.map(|chance| poll(chance, which(chance)));
    let of_copy = chance.of("sync");
    let copy = chance
        .of("copy")
        .one_in(2)
        .then(|| sync(of_copy, which(of_copy)));
    polls.chain(copy).map(|job| Step::new(0, job)).collect()
}

fn writer(chance: Chance) -> Writer {
    let wrong = chance.of("wrong");
    let seconds = match wrong.number(0..4) {
        0 | 1 => 0,
        2 => wrong.of("by").number(0..SKEW) as i64,
        _ => wrong.of("by").number(0..DAYS) as i64,
    };
    let role = chance.of("role").number(0..11);
    let steps = (0..3).flat_map(|era| {
        let chance = chance.of(("era", era));
        match role {
            8.. => {
                let retention = retention(chance, &[0, 0, 1, 16], &[0, 24, 720], &[2, 24]);
                round(chance, era, side(chance), &retention)
            }
            _ => jobs(chance, era, role),
        }
    });
    let wrong = if wrong.of("sign").one_in(2) {
        -seconds
    } else {
        seconds
    };
    Writer::new(wrong, steps)
}

fn jobs(chance: Chance, era: u64, role: u64) -> Vec<Step> {
    let count = chance.of("count").pick(&[0, 1, 2, 3]);
    let jobs = (0..count).map(|at| {
        let chance = chance.of(at);
        let within = if chance.of("late").one_in(4) {
            600_000
        } else {
            3000
        };
        Step::new(
            moment_of_work(chance, era, within),
            job(chance.of("job"), role),
        )
    });
    jobs.collect()
}

fn job(chance: Chance, role: u64) -> Job {
    let (catalog, side, all) = (which(chance), side(chance), chance.of("all").one_in(2));
    match role {
        0..=3 if chance.of("ring").one_in(4) => Job::Follow {
            promote: chance.of("promote").one_in(3),
        },
        0..=3 if chance.of("back").one_in(4) => Job::Rollback { catalog },
        0..=3 if chance.of("release").one_in(6) => Job::Release { catalog },
        0..=3 => poll(chance, catalog),
        4 => Job::Rollback { catalog },
        5..=6 if chance.of("import").one_in(4) => Job::Import { catalog, all },
        5..=6 => sync(chance, catalog),
        _ => Job::Remove { side, catalog },
    }
}
