//! Refuses documents that have two keys that differ only in case.

use std::{borrow::Cow, collections::HashSet};

use crate::canon::LineBuilder;
use crate::error::{FbcErrorKind, excerpt};
use crate::meta::fold;

/// Memory of a folded key beside its text, in bytes: its places in the old and the new table while a set grows.
const KEY_BYTES: usize = 100;

/// Refuses two keys of the outermost object that differ only in case.
// declcfg's decoder matches keys in any case, so it is not clear which of the two would be read.
pub(crate) fn check_unique(builder: &mut LineBuilder) -> Result<(), FbcErrorKind> {
    let (mut changed, mut taken) = (HashSet::new(), 0);
    // Keys are unique, so only one that folding changes can be equal to another. Catalogs have few or none.
    for at in 0..builder.field_count() {
        let key = builder.field(at).key;
        let Cow::Owned(folded) = fold(key) else { continue };
        if folded == key {
            continue;
        }
        if changed.contains(&folded) {
            return Err(folded_keys(builder, &folded));
        }
        taken += folded.len() + KEY_BYTES;
        builder.memory().take(folded.len() + KEY_BYTES);
        builder.check_memory()?;
        changed.insert(folded);
    }
    builder.memory().give_back(taken);
    let mut fields = 0..if changed.is_empty() { 0 } else { builder.field_count() };
    match fields.find(|at| changed.contains(builder.field(*at).key)) {
        Some(at) => Err(folded_keys(builder, builder.field(at).key)),
        None => Ok(()),
    }
}

fn folded_keys(builder: &LineBuilder, form: &str) -> FbcErrorKind {
    let keys = (0..builder.field_count()).map(|at| builder.field(at).key);
    let mut equal = keys.filter(|key| fold(key) == form).map(excerpt);
    let [first, second] = [equal.next(), equal.next()].map(Option::unwrap_or_default);
    FbcErrorKind::Malformed(format!("the keys {first:?} and {second:?} differ only in case"))
}
