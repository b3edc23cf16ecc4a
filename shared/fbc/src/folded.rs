//! Refuses documents that have two keys that differ only in case.

use std::borrow::Cow;

use crate::canon::LineBuilder;
use crate::error::{FbcErrorKind, excerpt};
use crate::meta::fold;

/// Key that folding changes: the field that has it, and its folded form in the arena.
#[derive(Clone, Copy, Debug)]
struct FoldedKey {
    field: u32,
    start: u32,
    end: u32,
}

/// Refuses two keys of the outermost object that differ only in case.
// declcfg's decoder matches keys in any case, so it is not clear which of the two would be read.
pub(crate) fn check_unique(builder: &mut LineBuilder) -> Result<(), FbcErrorKind> {
    let (mut arena, mut changed) = (Vec::new(), Vec::new());
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    // Keys are unique, so only one that folding changes can be equal to another. Catalogs have few or none.
    for field in 0..builder.field_count() {
        let Cow::Owned(folded) = fold(builder.field(field).key) else {
            continue;
        };
        if folded == builder.field(field).key {
            continue;
        }
        let start = offset(arena.len());
        let memory = builder.memory();
        if memory.reserve(&mut arena, folded.len()) {
            arena.extend_from_slice(folded.as_bytes());
        }
        let key = FoldedKey {
            field: offset(field),
            start,
            end: offset(arena.len()),
        };
        memory.push(&mut changed, key);
    }
    builder.check_memory()?;
    let taken = arena.capacity() + changed.capacity() * size_of::<FoldedKey>();
    let equal = find_equal(builder, &arena, changed);
    builder.memory().give_back(taken);
    equal.map_or(Ok(()), |folded| Err(folded_keys(builder, &folded)))
}

/// Returns the folded form of keys that differ only in case, if there are some.
fn find_equal(builder: &LineBuilder, arena: &[u8], mut changed: Vec<FoldedKey>) -> Option<Vec<u8>> {
    let folded = |key: &FoldedKey| &arena[key.start as usize..key.end as usize];
    changed.sort_unstable_by(|a, b| folded(a).cmp(folded(b)).then(a.field.cmp(&b.field)));
    let mut before = None;
    for key in &changed {
        let form = folded(key);
        if before == Some(form) || has_key(builder, form) {
            return Some(form.to_vec());
        }
        before = Some(form);
    }
    None
}

/// Returns true if the outermost object has this key. Its keys are sorted.
fn has_key(builder: &LineBuilder, key: &[u8]) -> bool {
    let (mut low, mut high) = (0, builder.field_count());
    while low < high {
        let middle = low.midpoint(high);
        match builder.field(middle).key.as_bytes().cmp(key) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    false
}

fn folded_keys(builder: &LineBuilder, form: &[u8]) -> FbcErrorKind {
    let keys = (0..builder.field_count()).map(|at| builder.field(at).key);
    let mut equal = keys.filter(|key| fold(key).as_bytes() == form).map(excerpt);
    let (first, second) = (equal.next(), equal.next());
    FbcErrorKind::FoldedKeys(first.unwrap_or_default(), second.unwrap_or_default())
}
