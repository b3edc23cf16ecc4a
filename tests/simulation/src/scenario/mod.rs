mod accidents;
mod crowd;
mod damage;
mod duel;

use std::time::Duration;

use upkeep::Retention;

use self::{accidents::accidents, crowd::crowd, damage::damage, duel::duel};
use crate::catalogs::{ALL, MOST, NAMES};
use crate::chance::Chance;
use crate::corruption::{DamageKind, Part};
use crate::fault::{Faults, Side};

/// Everything that happens in one run, before the faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Seed of all that is left to chance.
    pub seed: u64,
    /// Faults of the operations.
    pub faults: Faults,
    /// Steps before the faults, one after the other.
    pub prelude: Vec<Step>,
    /// Writers that work at the same time.
    pub writers: Vec<Writer>,
    /// Store and number of requests of each reader.
    pub readers: Vec<(Side, u64)>,
}

/// Writer that does one job after the other, each in a process of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Error of its clock in seconds.
    pub wrong: i64,
    /// Its jobs in order.
    pub steps: Vec<Step>,
}

/// Job with its earliest start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Earliest start in milliseconds.
    pub at: u64,
    /// Job of the step.
    pub job: Job,
}

impl Writer {
    /// Returns a writer that takes these steps in the order of their times.
    pub fn new(wrong: i64, steps: impl IntoIterator<Item = Step>) -> Self {
        let mut steps: Vec<Step> = steps.into_iter().collect();
        steps.sort_by_key(|step| step.at);
        Self { wrong, steps }
    }
}

impl Step {
    /// Does a job at this time.
    pub const fn new(at: u64, job: Job) -> Self {
        Self { at, job }
    }
}

/// Job of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Polls a catalog.
    Poll {
        /// Number of the catalog.
        catalog: usize,
        /// Version that its source holds.
        version: usize,
    },
    /// Polls a catalog by force: nothing is held back.
    Force {
        /// Number of the catalog.
        catalog: usize,
        /// Version that its source holds.
        version: usize,
    },
    /// Lets the content of a catalog through that is held back.
    Release {
        /// Number of the catalog.
        catalog: usize,
    },
    /// Polls the ring that follows the first catalog.
    Follow {
        /// True to move it to the newest state, whatever its age.
        promote: bool,
    },
    /// Rolls a catalog back to the publication before.
    Rollback {
        /// Number of the catalog.
        catalog: usize,
    },
    /// Copies a catalog from the origin.
    Sync {
        /// Number of the catalog.
        catalog: usize,
        /// True to make again what follows from the shards.
        rebuild: bool,
    },
    /// Exports a catalog from the origin and imports it into the copy.
    Import {
        /// Number of the catalog.
        catalog: usize,
        /// True to carry all objects, also those that follow from the shards.
        all: bool,
    },
    /// Fetches missing and damaged objects from the other store.
    Repair {
        /// Store that is repaired.
        side: Side,
        /// Number of the catalog.
        catalog: usize,
    },
    /// Removes a catalog from a store.
    Remove {
        /// Store that loses the catalog.
        side: Side,
        /// Number of the catalog.
        catalog: usize,
    },
    /// Damages an object, as a disk does. This is not a process.
    Corrupt {
        /// Store with the bad disk.
        side: Side,
        /// Kind of the object.
        part: Part,
        /// Kind of the damage.
        damage: DamageKind,
    },
    /// Takes the next step of garbage collection.
    Collect {
        /// Store that is collected.
        side: Side,
        /// Earlier publications that are kept.
        retention: Retention,
    },
}

pub(crate) const HOUR_MS: u64 = 3_600_000;
/// Length of an era in milliseconds. Work is done at its start, and then days pass in which
/// publications grow old.
pub(crate) const ERA_MS: u64 = 50 * HOUR_MS;
/// Time between two steps of a collector in milliseconds: the two hours of a phase and some
/// minutes.
pub(crate) const PHASE_MS: u64 = 125 * 60_000;
/// Number of steps of a round: condemn, delete, end the round and condemn again, delete again.
const PHASES: u64 = 4;

impl Scenario {
    /// Returns the scenario of a seed: of three in a row, the first one is a crowd, the second one a
    /// duel, and the third one has a source with accidents.
    pub fn random(seed: u64) -> Self {
        let chance = Chance::new(seed).of("scenario");
        let readers = chance.of("readers").number(0..3);
        let one_in = chance.of("faults").pick(&[0, 100, 30, 12, 5]);
        let (prelude, mut writers) = match seed % 3 {
            0 => crowd(chance),
            1 => duel(chance),
            _ => accidents(chance),
        };
        writers.extend(damage(chance.of("damage"), &writers));
        let readers = (0..readers).map(|at| (reads(chance.of(("reader", at)), &writers), 12));
        Self {
            seed,
            faults: Faults::Random { one_in },
            prelude,
            readers: readers.collect(),
            writers,
        }
    }
}

/// Returns the steps of all writers.
pub(crate) fn steps(writers: &[Writer]) -> impl Iterator<Item = &Step> {
    writers.iter().flat_map(|writer| &writer.steps)
}

/// Returns a store for a reader: the one that is collected, if there is one.
fn reads(chance: Chance, writers: &[Writer]) -> Side {
    let collected = steps(writers).find_map(|step| match step.job {
        Job::Collect { side, .. } => Some(side),
        _ => None,
    });
    collected.unwrap_or_else(|| side(chance))
}

/// Returns the earlier publications that a collector keeps: one of these numbers, of these ages and
/// with these times of grace, in hours.
fn retention(chance: Chance, generations: &[usize], ages: &[u64], graces: &[u64]) -> Retention {
    let hours =
        |about, hours: &[u64]| Duration::from_millis(chance.of(about).pick(hours) * HOUR_MS);
    Retention {
        generations: chance.of("generations").pick(generations),
        max_age: hours("age", ages),
        grace: hours("grace", graces),
    }
}

/// Returns the steps of a collector in one era.
fn round(chance: Chance, era: u64, side: Side, retention: &Retention) -> Vec<Step> {
    let steps = (0..PHASES).map(|phase| {
        let at = HOUR_MS
            + era * ERA_MS
            + phase * PHASE_MS
            + chance.of(("phase", phase)).number(0..20_000);
        let retention = retention.clone();
        Step::new(at, Job::Collect { side, retention })
    });
    steps.collect()
}

/// Returns a poll of a catalog at any version. One of eight is an accident.
fn poll(chance: Chance, catalog: usize) -> Job {
    let versions = if chance.of("accident").one_in(8) {
        MOST..ALL
    } else {
        0..MOST
    };
    let version = chance.of("version").number(versions) as usize;
    Job::Poll { catalog, version }
}

/// Returns a copy of a catalog, with or without the objects that can be made again.
fn sync(chance: Chance, catalog: usize) -> Job {
    let rebuild = chance.of("rebuild").one_in(2);
    Job::Sync { catalog, rebuild }
}

/// Returns a catalog, mostly the first one, so that writers meet.
pub(crate) fn which(chance: Chance) -> usize {
    usize::from(chance.of("catalog").one_in(4)) % NAMES.len()
}

pub(crate) fn side(chance: Chance) -> Side {
    chance
        .of("side")
        .pick(&[Side::Origin, Side::Origin, Side::Copy])
}

/// Returns a moment at a step of the collectors of an era, up to `within` milliseconds after it, or
/// between two steps.
pub(crate) fn moment_of_work(chance: Chance, era: u64, within: u64) -> u64 {
    let phase = chance.of("phase").number(0..PHASES) * PHASE_MS;
    let between = match chance.of("between").one_in(4) {
        true => chance.of("gap").number(0..PHASE_MS),
        false => 0,
    };
    HOUR_MS + era * ERA_MS + phase + between + chance.of("moment").number(0..within)
}

/// Returns a moment at which a writer may be at work, up to `last`.
pub(crate) fn moment(chance: Chance, last: u64) -> u64 {
    moment_of_work(
        chance,
        chance.of("era").number(0..last / ERA_MS + 1),
        20_000,
    )
}
