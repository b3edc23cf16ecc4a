//! What befalls a store besides requests that fail.

use super::{ERA_MS, HOUR_MS, Job, Step, Writer, side, which};
use crate::{
    chance::Chance,
    fault::Side,
    rot::{Decay, Part},
};

/// In one run of three a disk that damages something in each time of work, and mostly somebody who repairs it then.
pub(super) fn misfortunes(chance: Chance, others: &[Writer]) -> Vec<Writer> {
    if !chance.of("rot").one_in(3) {
        return Vec::new();
    }
    let side = victim(chance, others);
    let disk = (0..3).map(|era| rot(chance.of(("rot", era)), era, side));
    let disk = writer(disk.collect());
    let repairs = (0..3).filter(|era| !chance.of(("repair", era)).one_in(3));
    let repairs = repairs.map(|era| repair(chance.of(("repair", era)), era, side));
    let repairs = writer(repairs.collect());
    [disk, repairs].into()
}

/// Where the others work.
fn victim(chance: Chance, others: &[Writer]) -> Side {
    let jobs = others.iter().flat_map(|writer| &writer.steps).map(|step| &step.job);
    let copies = jobs
        .clone()
        .any(|job| matches!(job, Job::Sync { .. } | Job::Import { .. }));
    match copies {
        true => chance.of("side").pick(&[Side::Origin, Side::Copy]),
        false => Side::Origin,
    }
}

fn writer(steps: Vec<Step>) -> Writer {
    Writer { wrong: 0, steps }
}

fn rot(chance: Chance, era: u64, side: Side) -> Step {
    let parts = [
        Part::Shard,
        Part::Shard,
        Part::Whole,
        Part::Whole,
        Part::Index,
        Part::Snapshot,
        Part::Blob,
    ];
    let part = match side {
        // No other store has it for certain that the origin can take its pointer from.
        Side::Copy if chance.of("pointer").one_in(8) => Part::Pointer,
        _ => chance.of("part").pick(&parts),
    };
    let decay = chance
        .of("decay")
        .pick(&[Decay::Flipped, Decay::Flipped, Decay::Cut, Decay::Lost]);
    let job = Job::Rot { side, part, decay };
    Step {
        at: work(chance, era),
        job,
    }
}

fn repair(chance: Chance, era: u64, side: Side) -> Step {
    let catalog = which(chance);
    let job = Job::Repair { side, catalog };
    Step {
        at: work(chance, era),
        job,
    }
}

/// Around the others, or long after them.
fn work(chance: Chance, era: u64) -> u64 {
    let within = chance.of("within").pick(&[20_000, 20_000, 20_000, 20 * HOUR_MS]);
    HOUR_MS + era * ERA_MS + chance.of("at").number(0..within)
}

/// Somebody removes a catalog.
pub(super) fn removal(chance: Chance) -> Job {
    Job::Remove {
        side: side(chance),
        catalog: which(chance),
    }
}
