//! Damage by a disk, repairs, and removals of catalogs.

use super::{ERA_MS, HOUR_MS, Job, Step, Writer, steps, which};
use crate::chance::Chance;
use crate::corruption::{DamageKind, Part};
use crate::fault::Side;

/// Returns, for one run of three, a disk that damages an object in each era, and mostly a writer
/// that repairs it.
pub(super) fn damage(chance: Chance, others: &[Writer]) -> Vec<Writer> {
    if !chance.of("damage").one_in(3) {
        return Vec::new();
    }
    let side = victim(chance, others);
    let disk = (0..3).map(|era| corrupt(chance.of(("corrupt", era)), era, side));
    let repairs = (0..3).filter(|era| !chance.of(("repair", era)).one_in(3));
    let repairs = repairs.map(|era| repair(chance.of(("repair", era)), era, side));
    vec![Writer::new(0, disk), Writer::new(0, repairs)]
}

/// Returns a store on which the others work.
fn victim(chance: Chance, others: &[Writer]) -> Side {
    let reaches_copy = |step: &Step| matches!(step.job, Job::Sync { .. } | Job::Import { .. });
    if steps(others).any(reaches_copy) {
        chance.of("side").pick(&[Side::Origin, Side::Copy])
    } else {
        Side::Origin
    }
}

fn corrupt(chance: Chance, era: u64, side: Side) -> Step {
    use DamageKind::{Cut, Flipped, Lost};
    use Part::{All, Blob, Index, Shard, Snapshot};
    let parts = [Shard, Shard, All, All, Index, Snapshot, Blob];
    let part = match side {
        // The origin could take its pointer from no other store for certain.
        Side::Copy if chance.of("pointer").one_in(8) => Part::Pointer,
        _ => chance.of("part").pick(&parts),
    };
    let damage = chance.of("damage").pick(&[Flipped, Flipped, Cut, Lost]);
    Step::new(moment(chance, era), Job::Corrupt { side, part, damage })
}

fn repair(chance: Chance, era: u64, side: Side) -> Step {
    let catalog = which(chance);
    Step::new(moment(chance, era), Job::Repair { side, catalog })
}

/// Returns a moment at the start of the others' work, or long after it.
fn moment(chance: Chance, era: u64) -> u64 {
    let within = chance
        .of("within")
        .pick(&[20_000, 20_000, 20_000, 20 * HOUR_MS]);
    HOUR_MS + era * ERA_MS + chance.of("at").number(0..within)
}
