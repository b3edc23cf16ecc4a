use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::{Current, ObjectRef, Sha256, Snapshot};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use crate::{lines::CatalogLines, violation::Violation};

/// Number of contents of a catalog that are kept: a few more than its pointer names.
const CONTENTS: usize = 24;

/// States that all clients together have seen.
#[derive(Debug, Default)]
pub(crate) struct History {
    catalogs: Mutex<BTreeMap<String, CatalogHistory>>,
    /// Hash of the bytes under each entity tag.
    tags: Mutex<HashMap<String, Sha256>>,
}

/// States of one catalog.
#[derive(Debug, Default)]
pub(crate) struct CatalogHistory {
    /// Latest serial that any client has seen. A later request must not return an earlier one: a
    /// server over a folder reads the pointer for every request.
    pub(crate) serial: u64,
    /// Content hash of each known serial.
    contents: BTreeMap<u64, Sha256>,
    /// Latest known Snapshot of each content. A content that comes back may have another one, because
    /// it has the days on which its versions were first seen.
    pub(crate) snapshots: HashMap<Sha256, ObjectRef>,
    pub(crate) states: Kept<Snapshot>,
    pub(crate) lines: Kept<CatalogLines>,
}

/// Values by content hash, the latest last.
pub(crate) type Kept<T> = Vec<(Sha256, Arc<T>)>;

impl History {
    pub(crate) fn names(&self) -> Vec<String> {
        self.catalogs.lock().keys().cloned().collect()
    }

    /// Returns what is known of a catalog.
    pub(crate) fn of(&self, catalog: &str) -> MappedMutexGuard<'_, CatalogHistory> {
        let catalogs = self.catalogs.lock();
        MutexGuard::map(catalogs, |catalogs| {
            catalogs.entry(catalog.to_owned()).or_default()
        })
    }

    /// Returns the number of publications of each catalog since it was first seen.
    pub(crate) fn publications(&self) -> BTreeMap<String, u64> {
        let catalogs = self.catalogs.lock();
        let counts = catalogs.iter().map(|(name, known)| {
            let first = known.contents.keys().next();
            (name.clone(), first.map_or(0, |first| known.serial - first))
        });
        counts.collect()
    }

    /// Adds a pointer. `floor` is the latest serial that was known when it was requested.
    pub(crate) fn learn(
        &self,
        catalog: &str,
        current: &Current,
        floor: u64,
    ) -> Result<(), Violation> {
        forward(current.serial, floor)?;
        let mut known = self.of(catalog);
        known.serial = known.serial.max(current.serial);
        known.name(current.serial, current.content_hash, current.snapshot)?;
        for previous in &current.previous {
            known.name(previous.serial, previous.content_hash, previous.snapshot)?;
        }
        Ok(())
    }

    /// Returns the contents from one serial to another, or `None` if one of them is unknown.
    pub(crate) fn between(&self, catalog: &str, from: u64, to: u64) -> Option<Vec<Sha256>> {
        let known = self.of(catalog);
        (from..=to)
            .map(|serial| known.contents.get(&serial).copied())
            .collect()
    }

    /// Checks that a tag always stands for the same bytes, as a strong one must (RFC 9110, section
    /// 8.8.1).
    pub(crate) fn remember(&self, tag: &str, now: Sha256) -> Result<(), Violation> {
        let before = *self.tags.lock().entry(tag.to_owned()).or_insert(now);
        match before == now {
            true => Ok(()),
            false => Err(Violation::Reused {
                tag: tag.to_owned(),
                before,
                now,
            }),
        }
    }
}

impl CatalogHistory {
    fn name(&mut self, serial: u64, content: Sha256, snapshot: ObjectRef) -> Result<(), Violation> {
        let known = *self.contents.entry(serial).or_insert(content);
        crate::violation::equal("the content of a serial", &content, &known)?;
        self.snapshots.insert(content, snapshot);
        Ok(())
    }
}

/// Checks that a serial is not older than a known one.
pub(crate) fn forward(found: u64, known: u64) -> Result<(), Violation> {
    match found < known {
        true => Err(Violation::Back { found, known }),
        false => Ok(()),
    }
}

/// Returns the value of a content, if it is kept.
pub(crate) fn find<T>(kept: &Kept<T>, content: Sha256) -> Option<Arc<T>> {
    let found = kept.iter().find(|(hash, _)| *hash == content);
    found.map(|(_, value)| Arc::clone(value))
}

/// Adds a value, and removes the oldest one if there are too many.
pub(crate) fn keep<T>(kept: &mut Kept<T>, content: Sha256, value: Arc<T>) {
    kept.retain(|(hash, _)| *hash != content);
    kept.push((content, value));
    if kept.len() > CONTENTS {
        kept.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use testkit::{CurrentBuilder, snapshot};

    use super::*;

    fn hash(number: u64) -> Sha256 {
        Sha256::of(&number.to_be_bytes())
    }

    /// Returns the pointer after so many publications, each with another content.
    fn current(serial: u64) -> Current {
        let publish = |before: Option<Current>, serial: u64| {
            let snapshot = snapshot(&[("p", &serial.to_string())]);
            Some(
                CurrentBuilder::new(&snapshot)
                    .after(before.as_ref())
                    .build(),
            )
        };
        (1..=serial).fold(None, publish).unwrap()
    }

    #[test]
    fn learn_refuses_serials_older_than_the_floor_and_other_contents() {
        let history = History::default();
        let learn = |current: &Current, floor| {
            history
                .learn("demo", current, floor)
                .map_err(|error| error.label())
        };
        assert_eq!(learn(&current(3), 0), Ok(()));
        // Requested before the third serial was known.
        assert_eq!(learn(&current(2), 2), Ok(()));
        assert_eq!(history.of("demo").serial, 3);
        assert_eq!(learn(&current(2), 3), Err("back"));
        // A range is known only as a whole.
        let known = [2, 3].map(|serial| current(serial).content_hash);
        assert_eq!(history.between("demo", 2, 3), Some(known.to_vec()));
        assert_eq!(history.between("demo", 3, 4), None);
        assert_eq!(history.publications()["demo"], 2);
        let mut other = current(4);
        other.previous[0].content_hash = hash(9);
        assert_eq!(learn(&other, 0), Err("differs"));
    }

    #[test]
    fn remember_refuses_other_bytes_for_a_tag() {
        let history = History::default();
        let remember = |tag, number| {
            history
                .remember(tag, hash(number))
                .map_err(|error| error.label())
        };
        let remembered =
            [("a", 1), ("a", 1), ("b", 2), ("a", 2)].map(|(tag, number)| remember(tag, number));
        assert_eq!(remembered, [Ok(()), Ok(()), Ok(()), Err("reused")]);
    }

    #[test]
    fn keep_removes_all_but_the_latest_contents() {
        let mut kept = Vec::new();
        (0..=CONTENTS as u64).for_each(|number| keep(&mut kept, hash(number), Arc::new(number)));
        assert_eq!(find(&kept, hash(0)), None);
        assert_eq!(find(&kept, hash(1)).as_deref(), Some(&1));
    }
}
