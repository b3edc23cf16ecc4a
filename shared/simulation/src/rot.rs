use std::collections::BTreeMap;

use bytes::Bytes;
use layout::{Form, Key};

use crate::{
    chance::Chance,
    site::Site,
    snapshot::{Coding, plain},
    world::World,
};

/// Which objects a disk damages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A shard.
    Shard,
    /// A form of `all.json`.
    Whole,
    /// An index.
    Index,
    /// A snapshot, published or earlier.
    Snapshot,
    /// A part of an image.
    Blob,
    /// `current.json`. Nothing tells that it is another one as long as it can be read, so it is always cut short.
    Pointer,
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decay {
    /// One bit is another. Size, date and version stay.
    Flipped,
    /// The end is gone.
    Cut,
    /// All of it is gone.
    Lost,
}

/// Everything in one store that a disk damaged, and what it was before.
#[derive(Debug, Default)]
pub(crate) struct Rotten {
    now: BTreeMap<Key, Damage>,
    mended: Vec<(Key, u64, u64)>,
}

#[derive(Debug)]
struct Damage {
    since: u64,
    was: Bytes,
    /// None if it is lost.
    is: Option<Bytes>,
}

impl Part {
    fn has(self, key: &Key) -> bool {
        match self {
            Self::Shard => matches!(key, Key::Shard(_)),
            Self::Whole => matches!(key, Key::All(_, _, Form::Zstd | Form::Gzip | Form::Identity)),
            Self::Index => matches!(key, Key::Index(..)),
            Self::Snapshot => matches!(key, Key::Snapshot(..)),
            Self::Blob => matches!(key, Key::Blob(_)),
            Self::Pointer => matches!(key, Key::Current(_)),
        }
    }
}

/// Damages one object of a store. What is published is hit more often.
pub(crate) fn rot(world: &World, site: &Site, (part, decay): (Part, Decay), chance: Chance) -> String {
    let objects = site.store.objects();
    let named = site.witness().named();
    // Twice the same bit would be none.
    let is_hit = |key: &Key| part.has(key) && !site.witness().rotten.has(key);
    let fitting: Vec<&Key> = objects.keys().filter(|key| is_hit(key)).collect();
    let published: Vec<&Key> = fitting.iter().copied().filter(|key| named.contains(key)).collect();
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
    let decay = if part == Part::Pointer { Decay::Cut } else { decay };
    let is = damaged(key, was, decay, chance);
    match (&is, decay) {
        (None, _) => site.store.lose(key),
        (Some(is), Decay::Cut) => site.store.truncate(key, is.len()),
        (Some(is), _) => site.store.corrupt(key, is.clone()),
    }
    site.witness().rotten.add(world.now(), key, was, is);
    format!("{key} is damaged: {decay:?}")
}

fn damaged(key: &Key, was: &Bytes, decay: Decay, chance: Chance) -> Option<Bytes> {
    let at = chance.of("at").number(0..(was.len() as u64).max(1)) as usize;
    match decay {
        Decay::Lost => None,
        // Without its last line feed alone, a document is read all the same.
        Decay::Cut => Some(was.slice(..at.min(was.len().saturating_sub(2)))),
        Decay::Flipped => {
            let flips = (0..was.len()).map(|step| flipped(was, (at + step) % was.len(), chance.of("bit").number(0..8)));
            flips.into_iter().find(|is| is_other(key, was, is))
        }
    }
}

fn flipped(was: &Bytes, at: usize, bit: u64) -> Bytes {
    let mut bytes = was.to_vec();
    bytes[at] ^= 1 << bit;
    bytes.into()
}

/// A few bits of a compressed object mean nothing. Such a flip is no damage: what holds the same may be published as it
/// is, as what another compressor made.
fn is_other(key: &Key, was: &[u8], is: &[u8]) -> bool {
    let content = |bytes| plain(bytes, Coding::of(key)).ok();
    content(is) != content(was)
}

impl Rotten {
    fn add(&mut self, now: u64, key: &Key, was: &Bytes, is: Option<Bytes>) {
        let damage = self.now.entry(key.clone()).or_insert_with(|| Damage {
            since: now,
            was: was.clone(),
            is: None,
        });
        damage.is = is;
    }

    /// Forgets what is damaged no more. What was damaged may also be removed, to be written again: then it is lost until
    /// then. A pointer that is gone was removed for good.
    pub(crate) fn compare(&mut self, now: u64, objects: &BTreeMap<Key, Bytes>) {
        let mended = &mut self.mended;
        self.now.retain(|key, damage| {
            let is = objects.get(key);
            let stays = match is {
                None => !matches!(key, Key::Current(_)),
                Some(is) => damage.is.as_ref() == Some(is) && *is != damage.was,
            };
            damage.is = is.cloned();
            if !stays {
                mended.push((key.clone(), damage.since, now));
            }
            stays
        });
    }

    /// All objects as they would be without damage.
    pub(crate) fn heal(&self, objects: &mut BTreeMap<Key, Bytes>) {
        let sound = self.now.iter().map(|(key, damage)| (key.clone(), damage.was.clone()));
        objects.extend(sound);
    }

    /// Whether there was never any.
    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty() && self.mended.is_empty()
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.now.contains_key(key)
    }

    /// What an object was before, if it is damaged now.
    pub(crate) fn was(&self, key: &Key) -> Option<&Bytes> {
        self.now.get(key).map(|damage| &damage.was)
    }

    /// Whether one of these was damaged at some time since then.
    pub(crate) fn since(&self, from: u64, is: impl Fn(&Key) -> bool) -> bool {
        let mended = self.mended.iter();
        let mut mended = mended.filter(|(_, _, until)| *until >= from).map(|(key, ..)| key);
        self.now.keys().any(&is) || mended.any(is)
    }
}
