use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use layout::{CatalogName, Key, Sha256};
use serde_json::Value;

use crate::{
    fault::{Kind, Operation, Side},
    history::{History, State},
    rot::Rotten,
    snapshot::{Content, read, sha256, text},
};

/// Sees every state of one store, and says what must never be. It reads the documents as plain JSON and decompresses by
/// itself, so that it shares no mistake with the rooms that it judges. What a disk damaged counts as if it were not: it
/// may be served by nobody, but that is for the readers to tell.
pub(crate) struct Witness {
    side: Side,
    histories: BTreeMap<CatalogName, History>,
    /// Contents by hash.
    contents: BTreeMap<Sha256, Content>,
    /// What each snapshot names, as it was when it was checked to its last byte. Later it only has to be the same.
    sound: BTreeMap<(CatalogName, Sha256), BTreeMap<Key, Bytes>>,
    /// Who may remove which catalog.
    removers: BTreeSet<(u8, CatalogName)>,
    /// Snapshots that were written and not published since.
    unpublished: BTreeSet<Key>,
    pub(crate) rotten: Rotten,
}

impl Witness {
    pub(crate) fn new(side: Side) -> Self {
        Self {
            side,
            histories: BTreeMap::new(),
            contents: BTreeMap::new(),
            sound: BTreeMap::new(),
            removers: BTreeSet::new(),
            unpublished: BTreeSet::new(),
            rotten: Rotten::default(),
        }
    }

    /// All states of a catalog, the oldest first.
    pub(crate) fn history(&self, name: &CatalogName) -> &[State] {
        self.histories.get(name).map_or(&[], |history| &history.states)
    }

    /// What is published of a catalog.
    pub(crate) fn published(&self, name: &CatalogName) -> Option<&State> {
        self.histories.get(name)?.last()
    }

    /// Whether it was ever removed, or its pointer damaged.
    pub(crate) fn was_removed(&self, name: &CatalogName) -> bool {
        self.histories.get(name).is_some_and(History::has_ended)
    }

    /// Those that were published at some moment between the two.
    pub(crate) fn between(&self, name: &CatalogName, from: u64, to: u64) -> Vec<State> {
        let history = self.histories.get(name).into_iter();
        history.flat_map(|history| history.between(from, to)).cloned().collect()
    }

    /// Whether nothing was published of a catalog at some moment between the two.
    pub(crate) fn was_absent(&self, name: &CatalogName, from: u64, to: u64) -> bool {
        let history = self.histories.get(name);
        history.is_none_or(|history| history.was_absent(from, to))
    }

    pub(crate) fn content(&self, hash: &Sha256) -> Option<&Content> {
        self.contents.get(hash)
    }

    /// From now on this actor may remove a catalog, also when it is dead.
    pub(crate) fn allow_removal(&mut self, actor: u8, name: &CatalogName) {
        self.removers.insert((actor, name.clone()));
    }

    /// Somebody wrote an object, or replaced it.
    pub(crate) fn wrote(&mut self, key: Key) {
        if matches!(key, Key::Snapshot(..)) {
            self.unpublished.insert(key);
        }
    }

    /// Looks at everything that is published after an operation.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn look(
        &mut self,
        now: u64,
        mut objects: BTreeMap<Key, Bytes>,
        operation: &Operation,
    ) -> Result<(), String> {
        self.replaced(now, &objects);
        self.removed(now, &objects, operation)?;
        self.rotten.heal(&mut objects);
        let listed = names(&objects);
        for (key, bytes) in &objects {
            let Key::Current(name) = key else { continue };
            let in_words = |what| format!("{name}: {what}");
            let history = self.histories.entry(name.clone()).or_default();
            history.append(now, self.side, bytes).map_err(in_words)?;
            self.is_whole(name, &objects).map_err(in_words)?;
            let content = self.published(name).expect("it was just appended").content;
            self.unpublished.remove(&Key::Snapshot(name.clone(), content));
            if !listed.contains(name.as_str()) {
                return Err(format!("{name} is published and not in catalogs.json"));
            }
        }
        Ok(())
    }

    /// What follows a pointer that could not be read does not have to go on from it.
    fn replaced(&mut self, now: u64, objects: &BTreeMap<Key, Bytes>) {
        let unreadable = |name: &CatalogName, rotten: &Rotten| rotten.has(&Key::Current(name.clone()));
        let before: Vec<CatalogName> = self
            .histories
            .keys()
            .filter(|name| unreadable(name, &self.rotten))
            .cloned()
            .collect();
        self.rotten.compare(now, objects);
        for name in before {
            if let Some(history) = self
                .histories
                .get_mut(&name)
                .filter(|_| !unreadable(&name, &self.rotten))
            {
                history.end(now);
            }
        }
    }

    fn removed(&mut self, now: u64, objects: &BTreeMap<Key, Bytes>, operation: &Operation) -> Result<(), String> {
        for (name, history) in &mut self.histories {
            let key = Key::Current(name.clone());
            if history.last().is_none() || objects.contains_key(&key) {
                continue;
            }
            let by = (operation.actor, name.clone());
            if operation.kind != Kind::Delete || operation.subject != key.to_string() || !self.removers.contains(&by) {
                return Err(format!("the pointer of {name} is gone"));
            }
            history.end(now);
        }
        Ok(())
    }

    /// Whether everything that the pointer leads to is there, and what it should be.
    fn is_whole(&mut self, name: &CatalogName, objects: &BTreeMap<Key, Bytes>) -> Result<(), String> {
        let state = self.published(name).expect("it was just appended");
        let (hash, reference, sha256) = (state.content, &state.publication[1], state.snapshot);
        let key = Key::Snapshot(name.clone(), hash);
        if text(&reference["key"])? != key.to_string() {
            return Err(format!("it points at {}, not at {key}", reference["key"]));
        }
        let snapshot = objects
            .get(&key)
            .ok_or_else(|| format!("{key} is published and gone"))?;
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
        let last = |(name, history): (&CatalogName, &History)| Some((name.clone(), history.last()?.clone()));
        let published: Vec<_> = self.histories.iter().filter_map(last).collect();
        published
            .iter()
            .flat_map(|(name, state)| self.named_by(name, state))
            .collect()
    }

    /// What a state leads to.
    pub(crate) fn named_by(&self, name: &CatalogName, state: &State) -> Vec<Key> {
        let sound = self.sound.get(&(name.clone(), state.snapshot)).into_iter();
        let snapshot = Key::Snapshot(name.clone(), state.content);
        sound
            .flat_map(|sound| sound.keys().cloned())
            .chain([snapshot])
            .collect()
    }

    /// Whether an earlier Snapshot may lack something: a sweep removed it with what it names, and then it was written again,
    /// late, or by somebody who found before he published it what the sweep had done.
    pub(crate) fn may_lack(&self, name: &CatalogName) -> bool {
        self.unpublished.iter().any(|key| key.catalog() == Some(name))
    }

    /// What a verification has to find: everything damaged that is published, or was and is still there.
    pub(crate) fn damaged(&self, name: &CatalogName, objects: &BTreeMap<Key, Bytes>) -> Result<BTreeSet<Key>, String> {
        let pointer = Key::Current(name.clone());
        if self.rotten.has(&pointer) {
            return Ok([pointer].into());
        }
        let Some(state) = self.published(name) else {
            return Ok(BTreeSet::new());
        };
        let mut healed = objects.clone();
        self.rotten.heal(&mut healed);
        let mut damaged = BTreeSet::new();
        for (hash, is_current) in contents(state)? {
            let key = Key::Snapshot(name.clone(), hash);
            match (objects.get(&key), self.rotten.has(&key)) {
                // Earlier publications may be removed, so one that is lost is not missed.
                (None, _) if !is_current => {}
                // As long as it is damaged, nothing tells what it names.
                (_, true) => drop(damaged.insert(key)),
                (None, false) => return Err(format!("{key} is published and gone")),
                (Some(snapshot), false) => match read(name, hash, snapshot, &healed) {
                    Ok((_, sound)) => damaged.extend(sound.into_keys().filter(|key| self.rotten.has(key))),
                    Err(_) if !is_current && self.unpublished.contains(&key) => {}
                    Err(what) => return Err(what),
                },
            }
        }
        Ok(damaged)
    }
}

/// What `catalogs.json` says.
fn names(objects: &BTreeMap<Key, Bytes>) -> BTreeSet<String> {
    let document = objects
        .get(&Key::Catalogs)
        .map(|bytes| serde_json::from_slice::<Value>(bytes));
    let document = document.and_then(Result::ok).unwrap_or_default();
    let names = document["catalogs"].as_array().into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// The contents that a pointer names, each once, and whether it is the published one.
fn contents(state: &State) -> Result<BTreeMap<Sha256, bool>, String> {
    let mut contents = BTreeMap::new();
    for previous in state.publication[3].as_array().into_iter().flatten() {
        contents.insert(sha256(&previous["contentHash"])?, false);
    }
    contents.insert(state.content, true);
    Ok(contents)
}
