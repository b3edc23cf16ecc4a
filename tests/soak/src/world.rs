use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use layout::{Current, Sha256, Snapshot};

use crate::{lines::Lines, wrong::Wrong};

/// How many contents of a catalog are kept: a few more than its pointer names.
const CONTENTS: usize = 24;

/// What all visitors together have seen.
#[derive(Debug, Default)]
pub(crate) struct World {
    catalogs: Mutex<BTreeMap<String, Known>>,
    /// The hash of the bytes that each entity tag stood for.
    tags: Mutex<HashMap<String, Sha256>>,
}

/// What is known of a catalog.
#[derive(Debug, Default)]
struct Known {
    /// The latest serial.
    serial: u64,
    /// What was published under each serial that is known.
    contents: BTreeMap<u64, Sha256>,
    /// What the snapshot of a content has to hash to.
    snapshots: HashMap<Sha256, Sha256>,
    /// What lies there, the latest at the end.
    states: Vec<(Sha256, Arc<Snapshot>)>,
    lines: Vec<(Sha256, Arc<Lines>)>,
}

impl World {
    pub(crate) fn names(&self) -> Vec<String> {
        locked(&self.catalogs).keys().cloned().collect()
    }

    /// The latest serial that anybody has seen: whoever asks from now on must not be told an earlier one, since a server
    /// over a folder asks it for every request.
    pub(crate) fn serial(&self, catalog: &str) -> u64 {
        locked(&self.catalogs).get(catalog).map_or(0, |known| known.serial)
    }

    /// How many publications there were of each catalog since it was first seen, as far as its serials tell.
    pub(crate) fn publications(&self) -> BTreeMap<String, u64> {
        let catalogs = locked(&self.catalogs);
        let count = |known: &Known| {
            known
                .contents
                .first_key_value()
                .map_or(0, |(first, _)| known.serial - first)
        };
        catalogs
            .iter()
            .map(|(name, known)| (name.clone(), count(known)))
            .collect()
    }

    /// Takes in a pointer that was asked for when `floor` was known.
    pub(crate) fn learn(&self, catalog: &str, current: &Current, floor: u64) -> Result<(), Wrong> {
        forward(current.serial, floor)?;
        let mut catalogs = locked(&self.catalogs);
        let known = catalogs.entry(catalog.to_owned()).or_default();
        known.serial = known.serial.max(current.serial);
        known.name(current.serial, current.content_hash, Some(current.snapshot.sha256))?;
        for previous in &current.previous {
            known.name(previous.serial, previous.content_hash, previous.snapshot)?;
        }
        Ok(())
    }

    /// What was published from one serial to another; nothing if not all of it is known.
    pub(crate) fn between(&self, catalog: &str, from: u64, to: u64) -> Option<Vec<Sha256>> {
        let catalogs = locked(&self.catalogs);
        let contents = &catalogs.get(catalog)?.contents;
        (from..=to).map(|serial| contents.get(&serial).copied()).collect()
    }

    /// What the snapshot of a content has to hash to.
    pub(crate) fn snapshot_hash(&self, catalog: &str, content: Sha256) -> Option<Sha256> {
        locked(&self.catalogs).get(catalog)?.snapshots.get(&content).copied()
    }

    pub(crate) fn state(&self, catalog: &str, content: Sha256) -> Option<Arc<Snapshot>> {
        find(&locked(&self.catalogs).get(catalog)?.states, content)
    }

    pub(crate) fn lines(&self, catalog: &str, content: Sha256) -> Option<Arc<Lines>> {
        find(&locked(&self.catalogs).get(catalog)?.lines, content)
    }

    pub(crate) fn keep_state(&self, catalog: &str, content: Sha256, state: Arc<Snapshot>) {
        keep(
            &mut locked(&self.catalogs).entry(catalog.to_owned()).or_default().states,
            content,
            state,
        );
    }

    pub(crate) fn keep_lines(&self, catalog: &str, content: Sha256, lines: Arc<Lines>) {
        keep(
            &mut locked(&self.catalogs).entry(catalog.to_owned()).or_default().lines,
            content,
            lines,
        );
    }

    /// The same tag, the same bytes: it is a strong one (RFC 9110, section 8.8.1).
    pub(crate) fn remember(&self, tag: &str, now: Sha256) -> Result<(), Wrong> {
        let before = *locked(&self.tags).entry(tag.to_owned()).or_insert(now);
        match before == now {
            true => Ok(()),
            false => Err(Wrong::Reused {
                tag: tag.to_owned(),
                before,
                now,
            }),
        }
    }
}

impl Known {
    fn name(&mut self, serial: u64, content: Sha256, snapshot: Option<Sha256>) -> Result<(), Wrong> {
        let known = *self.contents.entry(serial).or_insert(content);
        crate::wrong::equal("the content of a serial", &content, &known)?;
        if let Some(snapshot) = snapshot {
            let known = *self.snapshots.entry(content).or_insert(snapshot);
            crate::wrong::equal("the hash of a snapshot", &snapshot, &known)?;
        }
        Ok(())
    }
}

/// Serials never go back.
pub(crate) fn forward(found: u64, known: u64) -> Result<(), Wrong> {
    match found < known {
        true => Err(Wrong::Back { found, known }),
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
    use std::time::UNIX_EPOCH;

    use layout::{Availability, CatalogName, Previous, RENDER_VERSION, SnapshotRef, SourceRef};

    use super::*;

    fn hash(number: u64) -> Sha256 {
        Sha256::of(&number.to_be_bytes())
    }

    fn current(serial: u64) -> Current {
        let name: CatalogName = "demo".parse().unwrap();
        let previous = (1..serial).rev().map(|serial| Previous {
            serial,
            content_hash: hash(serial),
            published_at: UNIX_EPOCH,
            snapshot: None,
            verified: None,
        });
        Current {
            serial,
            content_hash: hash(serial),
            snapshot: SnapshotRef::new(&name, hash(serial), b"snapshot"),
            source: SourceRef {
                reference: "dir:x".into(),
                digest: String::new(),
                verified: None,
            },
            render_version: RENDER_VERSION,
            published_at: UNIX_EPOCH,
            brought_back: None,
            availability: Availability::Available,
            previous: previous.collect(),
            signatures: Vec::new(),
        }
    }

    #[test]
    fn serials_go_forward_from_when_somebody_asked() {
        let world = World::default();
        world.learn("demo", &current(3), 0).unwrap();
        assert_eq!(world.serial("demo"), 3);
        // Asked for before anybody knew of the third.
        world.learn("demo", &current(2), 2).unwrap();
        assert_eq!(world.serial("demo"), 3);
        let wrong = world.learn("demo", &current(2), 3).unwrap_err();
        assert_eq!(wrong.word(), "back");
    }

    #[test]
    fn a_serial_stands_for_one_content() {
        let world = World::default();
        world.learn("demo", &current(3), 0).unwrap();
        let mut other = current(4);
        other.previous[0].content_hash = hash(9);
        assert_eq!(world.learn("demo", &other, 0).unwrap_err().word(), "differs");
    }

    #[test]
    fn what_was_published_between_is_known_or_not() {
        let world = World::default();
        world.learn("demo", &current(3), 0).unwrap();
        assert_eq!(world.between("demo", 2, 3), Some(vec![hash(2), hash(3)]));
        assert_eq!(world.between("demo", 3, 4), None);
        assert_eq!(world.publications()["demo"], 2);
    }

    #[test]
    fn a_tag_stands_for_the_same_bytes() {
        let world = World::default();
        world.remember("a", hash(1)).unwrap();
        world.remember("a", hash(1)).unwrap();
        world.remember("b", hash(2)).unwrap();
        assert_eq!(world.remember("a", hash(2)).unwrap_err().word(), "reused");
    }

    #[test]
    fn only_the_latest_contents_are_kept() {
        let world = World::default();
        for number in 0..=CONTENTS as u64 {
            let lines = Lines::parse(bytes::Bytes::new()).unwrap();
            world.keep_lines("demo", hash(number), Arc::new(lines));
        }
        assert!(world.lines("demo", hash(0)).is_none());
        assert!(world.lines("demo", hash(1)).is_some());
    }
}
