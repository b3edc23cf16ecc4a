use std::collections::BTreeMap;

use bytes::Bytes;
use model::{Key, Kind};

use crate::{chance::Chance, observed::ObservedStore, world::World};

/// Kind of object that a disk damages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A shard, published or earlier.
    Shard,
    /// An encoding of `all.json`.
    All,
    /// An index of all Metas.
    Index,
    /// A snapshot, published or earlier.
    Snapshot,
    /// A part of a catalog's container image.
    Blob,
    /// `current.json`. It is always cut short: an unsigned pointer that can be read cannot be
    /// distinguished from the right one.
    Pointer,
}

/// Damage that a disk does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// One bit is another. Size, date and version stay.
    Flipped,
    /// The end is gone.
    Cut,
    /// The whole object is gone.
    Lost,
}

/// All damage in one store, with the bytes from before it.
#[derive(Debug, Default)]
pub(crate) struct DamageLog {
    now: BTreeMap<Key, Damage>,
    repaired: Vec<(Key, u64, u64)>,
}

#[derive(Debug)]
struct Damage {
    since: u64,
    was: Bytes,
    /// Bytes of the damaged object; `None` if it is lost.
    is: Option<Bytes>,
}

impl Part {
    fn has(self, key: &Key) -> bool {
        matches!(
            (self, key),
            (Self::Shard, Key::Object(Kind::Package, _))
                | (Self::All, Key::Object(Kind::All(_), _))
                | (Self::Index, Key::Object(Kind::Index, _))
                | (Self::Snapshot, Key::Object(Kind::Snapshot, _))
                | (Self::Blob, Key::Object(Kind::Blob, _))
                | (Self::Pointer, Key::Current(_))
        )
    }
}

/// Damages one object of a store, a published one more often. Returns the event in words.
pub(crate) fn corrupt(
    world: &World,
    observed: &ObservedStore,
    part: Part,
    damage: DamageKind,
    chance: Chance,
) -> String {
    let objects = observed.store.objects();
    let named = observed.checker().named();
    // A bit that is flipped twice is not damaged.
    let is_hit = |key: &Key| part.has(key) && !observed.checker().damage.has(key);
    let fitting: Vec<&Key> = objects.keys().filter(|key| is_hit(key)).collect();
    let published: Vec<&Key> = fitting
        .iter()
        .copied()
        .filter(|key| named.contains(key))
        .collect();
    let among = if published.is_empty() || chance.of("any").one_in(3) {
        fitting
    } else {
        published
    };
    if among.is_empty() {
        return "there is nothing to damage".to_owned();
    }
    let key = chance.of("which").pick(&among);
    let was = &objects[key];
    let damage = if part == Part::Pointer {
        DamageKind::Cut
    } else {
        damage
    };
    let is = damaged(was, damage, chance);
    match (&is, damage) {
        (None, _) => observed.store.lose(key),
        (Some(is), DamageKind::Cut) => observed.store.truncate(key, is.len()),
        (Some(is), _) => observed.store.corrupt(key, is.clone()),
    }
    let (since, was) = (world.now(), was.clone());
    observed
        .checker()
        .damage
        .now
        .insert(key.clone(), Damage { since, was, is });
    format!("{key} is damaged: {damage:?}")
}

fn damaged(was: &Bytes, damage: DamageKind, chance: Chance) -> Option<Bytes> {
    let at = chance.of("at").number(0..(was.len() as u64).max(1)) as usize;
    match damage {
        DamageKind::Lost => None,
        // At least two bytes: a document without its last line feed can still be read.
        DamageKind::Cut => Some(was.slice(..at.min(was.len().saturating_sub(2)))),
        DamageKind::Flipped => {
            let mut bytes = was.to_vec();
            bytes[at] ^= 1 << chance.of("bit").number(0..8);
            Some(bytes.into())
        }
    }
}

impl DamageLog {
    /// Forgets the damage of objects that were repaired. A damaged object may also be deleted: then
    /// it counts as lost until it is written again. A pointer that is gone was removed for good.
    pub(crate) fn compare(&mut self, now: u64, objects: &BTreeMap<Key, Bytes>) {
        let repaired = &mut self.repaired;
        self.now.retain(|key, damage| {
            let is = objects.get(key);
            let stays = match is {
                None => !matches!(key, Key::Current(_)),
                Some(is) => damage.is.as_ref() == Some(is) && *is != damage.was,
            };
            damage.is = is.cloned();
            if !stays {
                repaired.push((key.clone(), damage.since, now));
            }
            stays
        });
    }

    /// Replaces damaged and lost objects by their sound bytes.
    pub(crate) fn heal(&self, objects: &mut BTreeMap<Key, Bytes>) {
        let sound = self
            .now
            .iter()
            .map(|(key, damage)| (key.clone(), damage.was.clone()));
        objects.extend(sound);
    }

    /// True if there was never any damage.
    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty() && self.repaired.is_empty()
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.now.contains_key(key)
    }

    /// Returns the sound bytes of an object that is damaged now.
    pub(crate) fn was(&self, key: &Key) -> Option<&Bytes> {
        self.now.get(key).map(|damage| &damage.was)
    }

    /// True if one of these objects was damaged at some time since then.
    pub(crate) fn since(&self, from: u64, is: impl Fn(&Key) -> bool) -> bool {
        let repaired = self.repaired.iter();
        let mut repaired = repaired
            .filter(|(_, _, until)| *until >= from)
            .map(|(key, ..)| key);
        self.now.keys().any(&is) || repaired.any(is)
    }
}
