//! Those who publish again what was published before, against those who remove it.

use std::time::Duration;

use keep::GcSettings;

use super::{ERA_MS, HOUR_MS, Job, Step, Writer};
use crate::{catalogs, chance::Chance, fault::Side};

/// Writers who publish again what was published before, and somebody who removes it at the same time.
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
    let collectors = chance.of("collectors").pick(&[1, 1, 2]);
    let publishers = chance.of("publishers").pick(&[1, 1, 2]);
    let collectors = (0..collectors).map(|_| if copies { Foe::CollectsCopy } else { Foe::CollectsOrigin });
    let publishers = (0..publishers).map(|_| if copies { Foe::Copies } else { Foe::Publishes });
    let writers = collectors.chain(publishers).zip(0..);
    let writers: Vec<Writer> = writers.map(|(foe, at)| foe.writer(chance.of(("foe", at)))).collect();
    // Something has to be there to be copied.
    let origin = copies.then(|| Foe::Publishes.writer(chance.of("origin")));
    let prelude = prelude.map(|job| Step { at: 0, job }).collect();
    (prelude, writers.into_iter().chain(origin).collect())
}

#[derive(Clone, Copy)]
enum Foe {
    Publishes,
    Copies,
    CollectsOrigin,
    CollectsCopy,
}

impl Foe {
    /// Once in each era, at about the same time as the others.
    fn writer(self, chance: Chance) -> Writer {
        let steps = (0..3).map(|era| {
            let chance = chance.of(("era", era));
            Step {
                at: HOUR_MS + era * ERA_MS + chance.of("at").number(0..20_000),
                job: self.job(chance),
            }
        });
        Writer {
            wrong: 0,
            steps: steps.collect(),
        }
    }

    fn job(self, chance: Chance) -> Job {
        match self {
            Self::Publishes if chance.of("back").one_in(2) => Job::Rollback { catalog: 0 },
            Self::Publishes => Job::Poll {
                catalog: 0,
                version: chance.of("version").number(0..catalogs::MOST) as usize,
            },
            Self::Copies => Job::Sync {
                catalog: 0,
                rebuild: chance.of("rebuild").one_in(2),
            },
            Self::CollectsOrigin => collect(Side::Origin, chance),
            Self::CollectsCopy => collect(Side::Copy, chance),
        }
    }
}

/// Keeps the last of them sometimes, so that not all goes the first time.
fn collect(side: Side, chance: Chance) -> Job {
    let settings = GcSettings {
        generations: chance.of("generations").pick(&[0, 0, 16]),
        max_age: Duration::from_millis(chance.of("age").pick(&[0, 60, 720]) * HOUR_MS),
        grace: GcSettings::GRACE_MIN,
        dry_run: false,
    };
    Job::Collect { side, settings }
}
