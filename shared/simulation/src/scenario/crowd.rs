//! Writers who do all kinds of things.

use std::time::Duration;

use keep::GcSettings;

use super::{ERA_MS, HOUR_MS, Job, Step, Writer, misfortune::removal, side, which};
use crate::{catalogs, chance::Chance};

/// As wrong as a clock may be (`keep`).
const WRONG: u64 = 15 * 60;

/// Up to four writers who do all kinds of things.
pub(super) fn crowd(chance: Chance) -> (Vec<Step>, Vec<Writer>) {
    let writers = chance.of("writers").number(1..5);
    let writers = (0..writers).map(|at| writer(chance.of(("writer", at))));
    (prelude(chance.of("prelude")), writers.collect())
}

fn prelude(chance: Chance) -> Vec<Step> {
    let polls = chance.of("polls").number(0..4);
    let polls = (0..polls).map(|at| Step {
        at: 0,
        job: poll(chance.of(at)),
    });
    let copy = chance.of("copy").one_in(2).then(|| Step {
        at: 0,
        job: sync(chance.of("sync")),
    });
    polls.chain(copy).collect()
}

fn writer(chance: Chance) -> Writer {
    let wrong = chance.of("wrong");
    let seconds = if wrong.one_in(2) {
        0
    } else {
        wrong.of("by").number(0..WRONG) as i64
    };
    let role = chance.of("role").number(0..11);
    let eras = 0..3;
    let steps = eras.flat_map(|era| {
        let chance = chance.of(("era", era));
        let count = chance.of("count").pick(&[0, 1, 1, 2]);
        (0..count).map(move |at| {
            let chance = chance.of(at);
            let later = if chance.of("late").one_in(4) { 600_000 } else { 3000 };
            Step {
                at: HOUR_MS + era * ERA_MS + chance.of("at").number(0..later),
                job: job(chance.of("job"), role),
            }
        })
    });
    let mut steps: Vec<Step> = steps.collect();
    steps.sort_by_key(|step| step.at);
    Writer {
        wrong: if wrong.of("sign").one_in(2) { -seconds } else { seconds },
        steps,
    }
}

fn job(chance: Chance, role: u64) -> Job {
    match role {
        0..=3 if chance.of("back").one_in(4) => Job::Rollback { catalog: which(chance) },
        0..=3 => poll(chance),
        4 => Job::Rollback { catalog: which(chance) },
        5..=6 if chance.of("import").one_in(4) => Job::Import {
            catalog: which(chance),
            whole: chance.of("whole").one_in(2),
        },
        5..=6 => sync(chance),
        7 => removal(chance),
        _ => Job::Collect {
            side: side(chance),
            settings: settings(chance),
        },
    }
}

fn poll(chance: Chance) -> Job {
    Job::Poll {
        catalog: which(chance),
        version: chance.of("version").number(0..catalogs::MOST) as usize,
    }
}

fn sync(chance: Chance) -> Job {
    Job::Sync {
        catalog: which(chance),
        rebuild: chance.of("rebuild").one_in(2),
    }
}

fn settings(chance: Chance) -> GcSettings {
    let hours = |hours: u64| Duration::from_millis(hours * HOUR_MS);
    GcSettings {
        generations: chance.of("generations").pick(&[0, 0, 1, 16]),
        max_age: hours(chance.of("age").pick(&[0, 24, 720])),
        grace: hours(chance.of("grace").pick(&[1, 24])),
        dry_run: false,
    }
}
