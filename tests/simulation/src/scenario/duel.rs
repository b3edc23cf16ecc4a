//! Writers that publish earlier states again, against collectors that delete them.

use super::{Job, Step, Writer, moment_of_work, retention, round};
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
    let (collector, publisher) = if copies {
        (Role::Collects(Side::Copy), Role::Copies)
    } else {
        (Role::Collects(Side::Origin), Role::Publishes)
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
        let steps = (0..3).flat_map(|era| self.steps(chance.of(("era", era)), era));
        Writer::new(0, steps)
    }

    fn steps(self, chance: Chance, era: u64) -> Vec<Step> {
        if let Self::Collects(side) = self {
            // Earlier states are kept sometimes, so that not all are deleted the first time.
            return round(chance, era, side, &retention(chance, &[0, 0, 16], &[0, 60, 720], &[2]));
        }
        let steps = (0..2).map(|at| {
            let chance = chance.of(at);
            Step::new(moment_of_work(chance, era, 20_000), self.job(chance))
        });
        steps.collect()
    }

    fn job(self, chance: Chance) -> Job {
        match self {
            Self::Copies => Job::Sync {
                catalog: 0,
                rebuild: chance.of("rebuild").one_in(2),
            },
            _ if chance.of("back").one_in(2) => Job::Rollback { catalog: 0 },
            _ => Job::Poll {
                catalog: 0,
                version: chance.of("version").number(0..catalogs::MOST) as usize,
            },
        }
    }
}
