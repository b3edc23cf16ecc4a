use std::time::Duration;

use keep::GcSettings;

use crate::{
    catalogs::{self, NAMES},
    chance::Chance,
    fault::{Faults, Side},
    misfortune::{misfortunes, removal},
    rot::{Decay, Part},
};

/// Everything that one run does, before anything goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Decides what is left to chance.
    pub seed: u64,
    /// What goes wrong.
    pub faults: Faults,
    /// What is done before, calmly and one after the other.
    pub prelude: Vec<Step>,
    /// Who works at the same time.
    pub writers: Vec<Writer>,
    /// How many requests each reader makes, and of which side it is.
    pub readers: Vec<(Side, u64)>,
}

/// Who publishes, copies or removes: a job after the other, each in a process of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// By how many seconds its clock is wrong.
    pub wrong: i64,
    /// What it does.
    pub steps: Vec<Step>,
}

/// A job and when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Not before so many milliseconds after the start.
    pub at: u64,
    /// What to do.
    pub job: Job,
}

/// What a process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Polls a catalog whose source is at a version.
    Poll {
        /// Which catalog.
        catalog: usize,
        /// What its source holds.
        version: usize,
    },
    /// Goes back to what was published before.
    Rollback {
        /// Which catalog.
        catalog: usize,
    },
    /// Copies from the origin.
    Sync {
        /// Which catalog.
        catalog: usize,
        /// Whether to make what can be made of the shards.
        rebuild: bool,
    },
    /// Exports from the origin and imports.
    Import {
        /// Which catalog.
        catalog: usize,
        /// Whether everything is carried.
        whole: bool,
    },
    /// Fetches what is missing or damaged from the other store.
    Repair {
        /// Of which store.
        side: Side,
        /// Which catalog.
        catalog: usize,
    },
    /// Removes a catalog.
    Remove {
        /// From which store.
        side: Side,
        /// Which catalog.
        catalog: usize,
    },
    /// Is no process: the disk damages an object.
    Rot {
        /// Of which store.
        side: Side,
        /// What.
        part: Part,
        /// How.
        decay: Decay,
    },
    /// Removes what nothing names.
    Collect {
        /// From which store.
        side: Side,
        /// What is kept.
        settings: GcSettings,
    },
}

pub(crate) const HOUR_MS: u64 = 3_600_000;
/// Runs have times of work, with days between them in which objects grow old.
pub(crate) const ERA_MS: u64 = 50 * HOUR_MS;
/// As wrong as a clock may be (`keep`).
const WRONG: u64 = 15 * 60;

impl Scenario {
    /// The scenario of a seed: every other one a crowd, every other one a duel.
    pub fn random(seed: u64) -> Self {
        let chance = Chance::new(seed).of("scenario");
        let readers = chance.of("readers").number(0..3);
        let one_in = chance.of("faults").pick(&[0, 100, 30, 12, 5]);
        let (prelude, mut writers) = if seed.is_multiple_of(2) {
            crowd(chance)
        } else {
            duel(chance)
        };
        writers.extend(misfortunes(chance.of("misfortunes"), &writers));
        Self {
            seed,
            faults: Faults::Random { one_in },
            prelude,
            readers: (0..readers)
                .map(|at| (reads(chance.of(("reader", at)), &writers), 12))
                .collect(),
            writers,
        }
    }
}

/// Readers are where something is removed.
fn reads(chance: Chance, writers: &[Writer]) -> Side {
    let mut jobs = writers.iter().flat_map(|writer| &writer.steps).map(|step| &step.job);
    match jobs.find(|job| matches!(job, Job::Collect { .. })) {
        Some(Job::Collect { side, .. }) => *side,
        _ => side(chance),
    }
}

/// Up to four writers who do all kinds of things.
fn crowd(chance: Chance) -> (Vec<Step>, Vec<Writer>) {
    let writers = chance.of("writers").number(1..5);
    let writers = (0..writers).map(|at| writer(chance.of(("writer", at))));
    (prelude(chance.of("prelude")), writers.collect())
}

/// Writers who publish again what was published before, and somebody who removes it at the same time.
fn duel(chance: Chance) -> (Vec<Step>, Vec<Writer>) {
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

/// Mostly the same, so that writers meet.
pub(crate) fn which(chance: Chance) -> usize {
    usize::from(chance.of("catalog").one_in(4)) % NAMES.len()
}

pub(crate) fn side(chance: Chance) -> Side {
    chance.of("side").pick(&[Side::Origin, Side::Origin, Side::Copy])
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

/// A moment at which somebody may be writing, up to `last`.
pub(crate) fn moment(chance: Chance, last: u64) -> u64 {
    let era = chance.of("era").number(0..last / ERA_MS + 1);
    HOUR_MS + era * ERA_MS + chance.of("moment").number(0..20_000)
}
