//! Writers that publish earlier states again, against collectors that delete them.

use std::time::Duration;

use upkeep::Retention;

use super::{HOUR_MS, Job, Step, Writer, moment_of_work, round};
use crate::{catalogs, chance::Chance, fault::Side};

/// Returns publishers of earlier states with collectors, and what is done before.
pub(super) fn duel(chance: Chance) -> (Vec<Step>, Vec<Writer>) {
    let copies = chance.of("copies").one_in(3);
    let versions = (0..catalogs::MOST as usize).map(|version| Job::Poll { catalog: 0, version });
    let prelude = versions.flat_map(|poll| {
        let sync = Job::Sync {
            catalog: 0,
            rebuild: true,
        };
        [Some(poll), copies.then_some(sync)].into_iter().flatten()
    });
    let (collector, publisher) = match copies {
        true => (Role::Collects(Side::Copy), Role::Copies),
        false => (Role::Collects(Side::Origin), Role::Publishes),
    };
    let collectors = vec![collector; chance.of("collectors").pick(&[1, 1, 2])];
    let publishers = vec![publisher; chance.of("publishers").pick(&[1, 2, 3])];
    let roles = collectors.into_iter().chain(publishers).zip(0..);
    let writers: Vec<Writer> = roles.map(|(role, at)| role.writer(chance.of(("role", at)))).collect();
    // A copy needs an origin that changes.
    let origin = copies.then(|| Role::Publishes.writer(chance.of("origin")));
    let prelude = prelude.map(|job| Step::new(0, job)).collect();
    (prelude, writers.into_iter().chain(origin).collect())
}

#[derive(Clone, Copy)]
enum Role {
    Publishes,
    Copies,
    Collects(Side),
}

impl Role {
    /// Returns the steps of one writer: a collector takes all steps of a round in each era, the others meet it at some.
    fn writer(self, chance: Chance) -> Writer {
        let mut steps: Vec<Step> = (0..3)
            .flat_map(|era| self.steps(chance.of(("era", era)), era))
            .collect();
        steps.sort_by_key(|step| step.at);
        Writer { wrong: 0, steps }
    }

    fn steps(self, chance: Chance, era: u64) -> Vec<Step> {
        let job = |chance: Chance| match self {
            Self::Copies => Job::Sync {
                catalog: 0,
                rebuild: chance.of("rebuild").one_in(2),
            },
            _ => publish_again(chance),
        };
        match self {
            Self::Collects(side) => round(chance, era, side, &retention(chance)),
            Self::Publishes | Self::Copies => (0..2)
                .map(|at| {
                    let chance = chance.of(at);
                    Step::new(moment_of_work(chance, era, 20_000), job(chance))
                })
                .collect(),
        }
    }
}

fn publish_again(chance: Chance) -> Job {
    match chance.of("back").one_in(2) {
        true => Job::Rollback { catalog: 0 },
        false => Job::Poll {
            catalog: 0,
            version: chance.of("version").number(0..catalogs::MOST) as usize,
        },
    }
}

/// Keeps earlier states sometimes, so that not all are deleted the first time.
fn retention(chance: Chance) -> Retention {
    Retention {
        generations: chance.of("generations").pick(&[0, 0, 16]),
        max_age: Duration::from_millis(chance.of("age").pick(&[0, 60, 720]) * HOUR_MS),
        grace: Duration::from_millis(2 * HOUR_MS),
    }
}
