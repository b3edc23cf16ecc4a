use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::{Current, ObjectRef, Sha256, Snapshot};

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
struct CatalogHistory {
    /// Latest serial.
    serial: u64,
    /// Content hash of each known serial.
    contents: BTreeMap<u64, Sha256>,
    /// Snapshot of each content. One program under one compressor makes one for each.
    snapshots: HashMap<Sha256, ObjectRef>,
    /// Snapshots by content hash, the latest last.
    states: Vec<(Sha256, Arc<Snapshot>)>,
    lines: Vec<(Sha256, Arc<CatalogLines>)>,
}

impl History {
    pub(crate) fn names(&self) -> Vec<String> {
        locked(&self.catalogs).keys().cloned().collect()
    }

    /// Returns the latest serial that any client has seen. A later request must not return an earlier one: a server over a
    /// folder reads the pointer for every request.
    pub(crate) fn serial(&self, catalog: &str) -> u64 {
        locked(&self.catalogs).get(catalog).map_or(0, |known| known.serial)
    }

    /// Returns the number of publications of each catalog since it was first seen.
    pub(crate) fn publications(&self) -> BTreeMap<String, u64> {
        let catalogs = locked(&self.catalogs);
        let counts = catalogs.iter().map(|(name, known)| {
            let first = known.contents.keys().next();
            (name.clone(), first.map_or(0, |first| known.serial - first))
        });
        counts.collect()
    }

    /// Adds a pointer. `floor` is the latest serial that was known when it was requested.
    pub(crate) fn learn(&self, catalog: &str, current: &Current, floor: u64) -> Result<(), Violation> {
        forward(current.serial, floor)?;
        let mut catalogs = locked(&self.catalogs);
        let known = catalogs.entry(catalog.to_owned()).or_default();
        known.serial = known.serial.max(current.serial);
        known.name(current.serial, current.content_hash, current.snapshot)?;
        for previous in &current.previous {
            known.name(previous.serial, previous.content_hash, previous.snapshot)?;
        }
        Ok(())
    }

    /// Returns the contents from one serial to another, or `None` if one of them is unknown.
    pub(crate) fn between(&self, catalog: &str, from: u64, to: u64) -> Option<Vec<Sha256>> {
        let catalogs = locked(&self.catalogs);
        let contents = &catalogs.get(catalog)?.contents;
        (from..=to).map(|serial| contents.get(&serial).copied()).collect()
    }

    /// Returns the snapshot of a content, if a pointer has named it.
    pub(crate) fn snapshot(&self, catalog: &str, content: Sha256) -> Option<ObjectRef> {
        locked(&self.catalogs).get(catalog)?.snapshots.get(&content).copied()
    }

    pub(crate) fn state(&self, catalog: &str, content: Sha256) -> Option<Arc<Snapshot>> {
        find(&locked(&self.catalogs).get(catalog)?.states, content)
    }

    pub(crate) fn lines(&self, catalog: &str, content: Sha256) -> Option<Arc<CatalogLines>> {
        find(&locked(&self.catalogs).get(catalog)?.lines, content)
    }

    pub(crate) fn keep_state(&self, catalog: &str, content: Sha256, state: Arc<Snapshot>) {
        let mut catalogs = locked(&self.catalogs);
        keep(
            &mut catalogs.entry(catalog.to_owned()).or_default().states,
            content,
            state,
        );
    }

    pub(crate) fn keep_lines(&self, catalog: &str, content: Sha256, lines: Arc<CatalogLines>) {
        let mut catalogs = locked(&self.catalogs);
        keep(
            &mut catalogs.entry(catalog.to_owned()).or_default().lines,
            content,
            lines,
        );
    }

    /// Checks that a tag always stands for the same bytes, as a strong one must (RFC 9110, section 8.8.1).
    pub(crate) fn remember(&self, tag: &str, now: Sha256) -> Result<(), Violation> {
        let before = *locked(&self.tags).entry(tag.to_owned()).or_insert(now);
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
        let known = *self.snapshots.entry(content).or_insert(snapshot);
        crate::violation::equal("the snapshot of a content", &snapshot.key(), &known.key())
    }
}

/// Checks that a serial is not older than a known one.
pub(crate) fn forward(found: u64, known: u64) -> Result<(), Violation> {
    match found < known {
        true => Err(Violation::Back { found, known }),
        false => Ok(()),
    }
}

fn find<T: Clone>(kept: &[(Sha256, T)], content: Sha256) -> Option<T> {
    let found = kept.iter().find(|(hash, _)| *hash == content);
    found.map(|(_, value)| value.clone())
}

fn keep<T>(kept: &mut Vec<(Sha256, T)>, content: Sha256, value: T) {
    kept.retain(|(hash, _)| *hash != content);
    kept.push((content, value));
    if kept.len() > CONTENTS {
        kept.remove(0);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use model::{Kind, ObjectDigest, Previous};
    use testkit::{CurrentBuilder, first_published_at, snapshot};

    use super::*;

    fn hash(number: u64) -> Sha256 {
        Sha256::of(&number.to_be_bytes())
    }

    fn current(serial: u64) -> Current {
        let object = ObjectDigest::of(b"snapshot").with_kind(Kind::Snapshot);
        let previous = (1..serial).rev().map(|serial| Previous {
            serial,
            content_hash: hash(serial),
            snapshot: object,
            published_at: first_published_at(),
            verified: None,
        });
        let current = CurrentBuilder::new(&snapshot(&[]))
            .serial(serial)
            .previous(previous.collect())
            .stored_snapshot(object.digest)
            .build();
        Current {
            content_hash: hash(serial),
            ..current
        }
    }

    #[test]
    fn learn_refuses_a_serial_older_than_the_floor() {
        let history = History::default();
        history.learn("demo", &current(3), 0).unwrap();
        assert_eq!(history.serial("demo"), 3);
        // Requested before the third serial was known.
        history.learn("demo", &current(2), 2).unwrap();
        assert_eq!(history.serial("demo"), 3);
        let violation = history.learn("demo", &current(2), 3).unwrap_err();
        assert_eq!(violation.label(), "back");
    }

    #[test]
    fn learn_refuses_a_second_content_for_a_serial() {
        let history = History::default();
        history.learn("demo", &current(3), 0).unwrap();
        let mut other = current(4);
        other.previous[0].content_hash = hash(9);
        assert_eq!(history.learn("demo", &other, 0).unwrap_err().label(), "differs");
    }

    #[test]
    fn between_returns_only_complete_ranges() {
        let history = History::default();
        history.learn("demo", &current(3), 0).unwrap();
        assert_eq!(history.between("demo", 2, 3), Some(vec![hash(2), hash(3)]));
        assert_eq!(history.between("demo", 3, 4), None);
        assert_eq!(history.publications()["demo"], 2);
    }

    #[test]
    fn remember_refuses_other_bytes_for_a_tag() {
        let history = History::default();
        history.remember("a", hash(1)).unwrap();
        history.remember("a", hash(1)).unwrap();
        history.remember("b", hash(2)).unwrap();
        assert_eq!(history.remember("a", hash(2)).unwrap_err().label(), "reused");
    }

    #[test]
    fn history_keeps_only_the_latest_contents() {
        let history = History::default();
        for number in 0..=CONTENTS as u64 {
            let lines = CatalogLines::parse(bytes::Bytes::new()).unwrap();
            history.keep_lines("demo", hash(number), Arc::new(lines));
        }
        assert!(history.lines("demo", hash(0)).is_none());
        assert!(history.lines("demo", hash(1)).is_some());
    }
}
