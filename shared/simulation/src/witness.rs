use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use layout::{CatalogName, Key, Sha256};
use serde_json::Value;
use store::MemoryStore;

use crate::{
    fault::Side,
    snapshot::{Content, read, sha256, text},
};

/// How many earlier publications a pointer remembers.
const REMEMBERED: usize = 16;

/// Sees every state of one store, and says what must never be. It reads the documents as plain JSON and decompresses by
/// itself, so that it shares no mistake with the rooms that it judges.
pub(crate) struct Witness {
    side: Side,
    histories: BTreeMap<CatalogName, Vec<State>>,
    /// Contents by hash.
    contents: BTreeMap<Sha256, Content>,
    /// What each snapshot names, as it was when it was checked to its last byte. Later it only has to be the same.
    sound: BTreeMap<(CatalogName, Sha256), BTreeMap<Key, Bytes>>,
}

/// A pointer as it was at some time.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) since: u64,
    pub(crate) bytes: Bytes,
    pub(crate) serial: u64,
    pub(crate) content: Sha256,
    /// What must not change as long as the serial does not.
    publication: [Value; 4],
}

impl State {
    fn read(since: u64, bytes: &Bytes) -> Result<Self, String> {
        let document: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON: {error}"))?;
        let fields = ["contentHash", "snapshot", "publishedAt", "previous"];
        Ok(Self {
            since,
            bytes: bytes.clone(),
            serial: document["serial"].as_u64().ok_or("it has no serial")?,
            content: sha256(&document["contentHash"])?,
            publication: fields.map(|field| document[field].clone()),
        })
    }

    /// Whether it is the same publication, whose source was seen anew, or the one after `last`.
    fn follows(&self, last: &Self) -> bool {
        self.serial == last.serial || self.serial == last.serial + 1 && self.publication[3] == last.as_previous()
    }

    /// What the next publication has to remember of this one and of those before.
    fn as_previous(&self) -> Value {
        let [content, reference, published, previous] = &self.publication;
        let this = serde_json::json!({
            "serial": self.serial,
            "contentHash": content,
            "publishedAt": published,
            "snapshot": reference["sha256"],
        });
        let earlier = previous.as_array().into_iter().flatten().cloned();
        std::iter::once(this).chain(earlier).take(REMEMBERED).collect()
    }
}

impl Witness {
    pub(crate) const fn new(side: Side) -> Self {
        Self {
            side,
            histories: BTreeMap::new(),
            contents: BTreeMap::new(),
            sound: BTreeMap::new(),
        }
    }

    /// All states of a catalog, the oldest first.
    pub(crate) fn history(&self, name: &CatalogName) -> &[State] {
        self.histories.get(name).map_or(&[], Vec::as_slice)
    }

    /// Those that were published at some moment between the two.
    pub(crate) fn between(&self, name: &CatalogName, from: u64, to: u64) -> Vec<State> {
        let history = self.history(name);
        let first = history.iter().rposition(|state| state.since <= from).unwrap_or(0);
        let states = history[first..].iter().filter(|state| state.since <= to);
        states.cloned().collect()
    }

    pub(crate) fn content(&self, hash: &Sha256) -> Option<&Content> {
        self.contents.get(hash)
    }

    /// Looks at everything that is published now.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn look(&mut self, now: u64, store: &MemoryStore) -> Result<(), String> {
        let objects = store.objects();
        for name in self.histories.keys() {
            if !objects.contains_key(&Key::Current(name.clone())) {
                return Err(format!("the pointer of {name} is gone"));
            }
        }
        for (key, bytes) in &objects {
            let Key::Current(name) = key else { continue };
            let in_words = |what| format!("{name}: {what}");
            self.append(now, name, bytes).map_err(in_words)?;
            self.is_whole(name, &objects).map_err(in_words)?;
        }
        Ok(())
    }

    fn append(&mut self, now: u64, name: &CatalogName, bytes: &Bytes) -> Result<(), String> {
        let history = self.histories.entry(name.clone()).or_default();
        if history.last().is_some_and(|last| last.bytes == bytes) {
            return Ok(());
        }
        let next = State::read(now, bytes)?;
        if let Some(other) = history
            .iter()
            .find(|other| other.serial == next.serial && other.publication != next.publication)
        {
            return Err(format!(
                "serial {} is {} and {}",
                next.serial, other.content, next.content
            ));
        }
        match history.last() {
            Some(last) if next.serial < last.serial => {
                return Err(format!("the serial goes back from {} to {}", last.serial, next.serial));
            }
            None if self.side == Side::Origin && next.serial != 1 => {
                return Err(format!("the first serial is {}", next.serial));
            }
            // A copy may miss what was published between.
            Some(last) if self.side == Side::Origin && !next.follows(last) => {
                return Err(format!(
                    "serial {} does not remember serial {}",
                    next.serial, last.serial
                ));
            }
            _ => {}
        }
        history.push(next);
        Ok(())
    }

    /// Whether everything that the pointer leads to is there, and what it should be.
    fn is_whole(&mut self, name: &CatalogName, objects: &BTreeMap<Key, Bytes>) -> Result<(), String> {
        let state = self.history(name).last().expect("it was just appended");
        let (hash, reference) = (state.content, &state.publication[1]);
        let key = Key::Snapshot(name.clone(), hash);
        if text(&reference["key"])? != key.to_string() {
            return Err(format!("it points at {}, not at {key}", reference["key"]));
        }
        let snapshot = objects
            .get(&key)
            .ok_or_else(|| format!("{key} is published and gone"))?;
        let sha256 = sha256(&reference["sha256"])?;
        if Sha256::of(snapshot) != sha256 {
            return Err(format!("{key} is not the one that is pointed at"));
        }
        if let Some(sound) = self.sound.get(&(name.clone(), sha256)) {
            let other = sound.iter().find(|(key, bytes)| objects.get(*key) != Some(*bytes));
            return other.map_or(Ok(()), |(key, _)| {
                Err(format!("{key} is published and gone, or another"))
            });
        }
        let (content, sound) = read(name, hash, snapshot, objects)?;
        self.contents.insert(hash, content);
        self.sound.insert((name.clone(), sha256), sound);
        Ok(())
    }

    /// The keys of everything that is published, pointers and names aside.
    pub(crate) fn named(&self) -> BTreeSet<Key> {
        let mut named = BTreeSet::new();
        for (name, history) in &self.histories {
            let Some(state) = history.last() else { continue };
            named.insert(Key::Snapshot(name.clone(), state.content));
            let sound = sha256(&state.publication[1]["sha256"]).ok();
            let sound = sound.and_then(|sha256| self.sound.get(&(name.clone(), sha256)));
            named.extend(sound.into_iter().flat_map(|sound| sound.keys().cloned()));
        }
        named
    }
}
