mod crowd;
mod duel;
mod misfortune;

use keep::GcSettings;

use self::{crowd::crowd, duel::duel, misfortune::misfortunes};
use crate::{
    catalogs::NAMES,
    chance::Chance,
    fault::{Faults, Side},
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

/// Mostly the same, so that writers meet.
pub(crate) fn which(chance: Chance) -> usize {
    usize::from(chance.of("catalog").one_in(4)) % NAMES.len()
}

pub(crate) fn side(chance: Chance) -> Side {
    chance.of("side").pick(&[Side::Origin, Side::Origin, Side::Copy])
}

/// A moment at which somebody may be writing, up to `last`.
pub(crate) fn moment(chance: Chance, last: u64) -> u64 {
    let era = chance.of("era").number(0..last / ERA_MS + 1);
    HOUR_MS + era * ERA_MS + chance.of("moment").number(0..20_000)
}
