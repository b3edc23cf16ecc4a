use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::{CatalogName, Key, Kind as ObjectKind, Sha256};
use serde_json::Value;

use crate::catalogs::{self, RING};
use crate::corruption::DamageLog;
use crate::fault::{Kind, Operation, Side};
use crate::history::{History, NEVER_PUBLISHED, State};
use crate::holds::{HoldChecker, Right};
use crate::snapshot::{Content, read, referenced, sha256};
use crate::world::clock;

/// Checks every state of one store against what must always hold. It reads the documents as plain
/// JSON and decompresses by itself, so it shares no mistake with the crates that it checks. Damaged
/// objects count as sound here: that they are not served is checked by the clients.
#[derive(Default)]
pub(crate) struct InvariantChecker {
    histories: BTreeMap<CatalogName, History>,
    /// Contents by content hash.
    pub(crate) contents: BTreeMap<Sha256, Content>,
    /// Objects of each snapshot as they were when all of them were checked. Later they only have to
    /// be the same.
    sound: BTreeMap<Sha256, BTreeMap<Key, Bytes>>,
    /// Last counter of `gc.json`.
    gc_counter: u64,
    /// Actors that may remove a catalog.
    removers: BTreeSet<(u8, CatalogName)>,
    /// Catalogs that are published and not listed, with the actor that has to list them again.
    unlisted: BTreeMap<CatalogName, u8>,
    pub(crate) damage: DamageLog,
    pub(crate) holds: HoldChecker,
}

impl InvariantChecker {
    /// Returns all states of a catalog.
    pub(crate) fn history(&self, name: &CatalogName) -> &History {
        self.histories.get(name).unwrap_or(&NEVER_PUBLISHED)
    }

    /// Returns the number of states of all catalogs.
    pub(crate) fn commits(&self) -> usize {
        self.histories
            .values()
            .map(|history| history.states.len())
            .sum()
    }

    /// Lets an actor remove a catalog from now on, also after its process was killed: the request
    /// may come late.
    pub(crate) fn allow_removal(&mut self, actor: u8, name: &CatalogName) {
        self.removers.insert((actor, name.clone()));
    }

    /// Checks all that is published after an operation.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub(crate) fn check(
        &mut self,
        now: u64,
        mut objects: BTreeMap<Key, Bytes>,
        operation: &Operation,
    ) -> Result<(), String> {
        self.end_replaced(now, &objects);
        self.end_removed(now, &objects, operation)?;
        self.check_counter(&objects)?;
        self.damage.heal(&mut objects);
        let listed = listed_names(&objects);
        for (key, bytes) in &objects {
            let Key::Current(name) = key else { continue };
            let in_words = |what| format!("{name}: {what}");
            let history = self.histories.entry(name.clone()).or_default();
            let before = history.last().cloned();
            history
                .append(now, operation.side, bytes)
                .map_err(in_words)?;
            self.check_published(name, &objects).map_err(in_words)?;
            if operation.side == Side::Origin {
                self.check_kept(name, &objects).map_err(in_words)?;
                self.check_wanted(now, name, before, operation.actor)
                    .map_err(in_words)?;
            }
            if listed.contains(name.as_str()) {
                self.unlisted.remove(name);
            } else {
                self.check_unlisted(name, operation)?;
            }
        }
        Ok(())
    }

    /// Checks that a catalog is unlisted for a good reason. A removal takes a catalog off the list
    /// whose pointer is gone, and cannot see a pointer that is on its way. The actor that wrote this
    /// pointer lists the catalog again before anything else.
    fn check_unlisted(&mut self, name: &CatalogName, operation: &Operation) -> Result<(), String> {
        let subject = operation.subject.as_str();
        let publishes =
            operation.kind == Kind::Put && subject == Key::Current(name.clone()).to_string();
        let is_removable = self.removers.iter().any(|(_, removable)| removable == name);
        if publishes && is_removable {
            self.unlisted.insert(name.clone(), operation.actor);
            return Ok(());
        }
        match self.unlisted.get(name) {
            Some(actor) if operation.actor != *actor || subject == Key::Catalogs.to_string() => {
                Ok(())
            }
            _ => Err(format!("{name} is published and not in catalogs.json")),
        }
    }

    /// Checks that every write of `gc.json` raises its counter: no state may come back, or a
    /// compare-and-swap could succeed on another state than the one that was read.
    fn check_counter(&mut self, objects: &BTreeMap<Key, Bytes>) -> Result<(), String> {
        let Some(bytes) = objects.get(&Key::Gc) else {
            return Ok(());
        };
        let document: Value =
            serde_json::from_slice(bytes).map_err(|error| format!("gc.json: {error}"))?;
        let counter = document["counter"]
            .as_u64()
            .ok_or("gc.json has no counter")?;
        let last = self.gc_counter;
        if counter < last {
            return Err(format!(
                "the counter of gc.json goes back from {last} to {counter}"
            ));
        }
        self.gc_counter = counter;
        Ok(())
    }

    /// Ends the histories whose damaged pointer was replaced: the new one need not follow it.
    fn end_replaced(&mut self, now: u64, objects: &BTreeMap<Key, Bytes>) {
        let is_damaged =
            |name: &CatalogName, damage: &DamageLog| damage.has(&Key::Current(name.clone()));
        let names = self.histories.keys();
        let before: Vec<CatalogName> = names
            .filter(|name| is_damaged(name, &self.damage))
            .cloned()
            .collect();
        self.damage.compare(now, objects);
        for name in before
            .into_iter()
            .filter(|name| !is_damaged(name, &self.damage))
        {
            if let Some(history) = self.histories.get_mut(&name) {
                history.end(now);
            }
        }
    }

    fn end_removed(
        &mut self,
        now: u64,
        objects: &BTreeMap<Key, Bytes>,
        operation: &Operation,
    ) -> Result<(), String> {
        for (name, history) in &mut self.histories {
            let key = Key::Current(name.clone());
            if history.last().is_none() || objects.contains_key(&key) {
                continue;
            }
            let by = (operation.actor, name.clone());
            if operation.kind != Kind::Delete
                || operation.subject != key.to_string()
                || !self.removers.contains(&by)
            {
                return Err(format!("the pointer of {name} is gone"));
            }
            history.end(now);
        }
        Ok(())
    }

    /// Checks that every object of the published state is there and sound.
    fn check_published(
        &mut self,
        name: &CatalogName,
        objects: &BTreeMap<Key, Bytes>,
    ) -> Result<(), String> {
        let state = self.history(name).last().expect("it was just appended");
        let (hash, sha256) = (state.content, state.snapshot);
        let key = Key::Object(ObjectKind::Snapshot, sha256);
        let found = objects.get(&key);
        let snapshot = found.ok_or_else(|| format!("{key} is published and gone"))?;
        if Sha256::of(snapshot) != sha256 {
            return Err(format!("{key} has other bytes than its name says"));
        }
        if let Some(sound) = self.sound.get(&sha256) {
            let other = sound
                .iter()
                .find(|(key, bytes)| objects.get(*key) != Some(*bytes));
            return other.map_or(Ok(()), |(key, _)| {
                Err(format!("{key} is published and gone, or has other bytes"))
            });
        }
        let (content, sound) = read(hash, snapshot, objects)?;
        self.contents.insert(hash, content);
        self.sound.insert(sha256, sound);
        Ok(())
    }

    /// Checks that a new content was wanted: it is none that is held back, and the state of a ring
    /// is one of the catalog that it follows, and old enough. What is damaged cannot be compared:
    /// content over it is published, so that the catalog is served again.
    fn check_wanted(
        &self,
        now: u64,
        name: &CatalogName,
        before: Option<State>,
        actor: u8,
    ) -> Result<(), String> {
        let next = self.history(name).last().expect("it was just appended");
        if *name == catalogs::name(RING) {
            return self.check_ring(now, before.as_ref(), next, actor);
        }
        let Some(before) = before.filter(|before| before.content != next.content) else {
            return Ok(());
        };
        let is_other =
            |state: &State| catalogs::is_of_other_vendor(&self.contents[&state.content].all);
        if is_other(&before) == is_other(next) {
            return Ok(());
        }
        let named = self.named_by(&before);
        let from = self.holds.begin_of_senders(actor, now);
        if self.damage.since(from, |key| named.contains(key)) {
            return Ok(());
        }
        self.holds.check_accident(now, actor, name, &before, next)
    }

    /// Checks that what a ring begins to serve was published by the catalog that it follows, and
    /// the time of the ring before.
    fn check_ring(
        &self,
        now: u64,
        before: Option<&State>,
        next: &State,
        actor: u8,
    ) -> Result<(), String> {
        let is_placeholder = |state: &State| -> Result<bool, String> {
            let document: Value = serde_json::from_slice(&state.bytes)
                .map_err(|error| format!("it is not JSON: {error}"))?;
            Ok(document["source"]["ring"]["isPlaceholder"] == true)
        };
        let was_served = match before {
            Some(before) => before.content == next.content && !is_placeholder(before)?,
            None => false,
        };
        if was_served || is_placeholder(next)? {
            return Ok(());
        }
        let followed = self.history(&catalogs::name(0)).states.iter();
        let mut found = followed
            .filter(|state| state.content == next.content)
            .peekable();
        if found.peek().is_none() {
            let content = next.content;
            return Err(format!("{content} was never published by its source"));
        }
        let right = Right::Publish(catalogs::name(RING));
        if self.holds.has_right(actor, now, &right) {
            return Ok(());
        }
        for state in found {
            if state.published_at()? + catalogs::RING_DELAY <= clock(now, 0) {
                return Ok(());
            }
        }
        Err(format!("{} is not old enough", next.content))
    }

    /// Checks that a ring has every object of the states that it keeps. One whose snapshot was
    /// damaged may be collected, since nothing tells then what it has.
    fn check_kept(&self, name: &CatalogName, objects: &BTreeMap<Key, Bytes>) -> Result<(), String> {
        let state = self.history(name).last().expect("it was just appended");
        for snapshot in kept_by_ring(state)? {
            let key = Key::Object(ObjectKind::Snapshot, snapshot);
            if self.damage.since(0, |damaged| *damaged == key) {
                continue;
            }
            let mut named = self.named_by_snapshot(snapshot).into_iter();
            if let Some(key) = named.find(|key| !objects.contains_key(key)) {
                return Err(format!("{key} is of a state that the ring keeps, and gone"));
            }
        }
        Ok(())
    }

    /// Returns the keys of all that is published or kept by a ring, without the pointers and
    /// `catalogs.json`.
    pub(crate) fn named(&self) -> BTreeSet<Key> {
        let published = self.histories.values().filter_map(History::last);
        let mut named = BTreeSet::new();
        for state in published {
            named.extend(self.named_by(state));
            for snapshot in kept_by_ring(state).unwrap_or_default() {
                named.extend(self.named_by_snapshot(snapshot));
            }
        }
        named
    }

    /// Returns the keys of a state: its snapshot and all that the snapshot names.
    pub(crate) fn named_by(&self, state: &State) -> Vec<Key> {
        self.named_by_snapshot(state.snapshot)
    }

    fn named_by_snapshot(&self, snapshot: Sha256) -> Vec<Key> {
        let sound = self
            .sound
            .get(&snapshot)
            .into_iter()
            .flat_map(BTreeMap::keys);
        let snapshot = Key::Object(ObjectKind::Snapshot, snapshot);
        sound.cloned().chain([snapshot]).collect()
    }

    /// Returns the damaged objects that a verification has to find: those of the published state,
    /// and those of an earlier one whose snapshot and other objects are all there.
    pub(crate) fn damaged(
        &self,
        name: &CatalogName,
        objects: &BTreeMap<Key, Bytes>,
    ) -> Result<BTreeSet<Key>, String> {
        let pointer = Key::Current(name.clone());
        if self.damage.has(&pointer) {
            return Ok([pointer].into());
        }
        let Some(state) = self.history(name).last() else {
            return Ok(BTreeSet::new());
        };
        let mut healed = objects.clone();
        self.damage.heal(&mut healed);
        let mut damaged = BTreeSet::new();
        for (snapshot, (hash, is_current)) in snapshots(state)? {
            let key = Key::Object(ObjectKind::Snapshot, snapshot);
            match (objects.get(&key), self.damage.has(&key)) {
                // Collection may remove earlier publications, so one that is lost is not missed.
                (None, _) if !is_current => {}
                // As long as the snapshot is damaged, it does not tell what it names.
                (_, true) => drop(damaged.insert(key)),
                (None, false) => return Err(format!("{key} is published and gone")),
                (Some(bytes), false) => match read(hash, bytes, &healed) {
                    Ok((_, sound)) => {
                        damaged.extend(sound.into_keys().filter(|key| self.damage.has(key)));
                    }
                    // Collection may stop between the objects of an earlier publication.
                    Err(_) if !is_current => {}
                    Err(what) => return Err(what),
                },
            }
        }
        Ok(damaged)
    }
}

/// Returns the names in `catalogs.json`.
pub(crate) fn listed_names(objects: &BTreeMap<Key, Bytes>) -> BTreeSet<String> {
    let bytes = objects.get(&Key::Catalogs);
    let document = bytes.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let document = document.unwrap_or_default();
    let names = document["catalogs"].as_array().into_iter().flatten();
    names
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// Returns the snapshots that a pointer names with their content hashes, each once, and true for
/// the published one.
fn snapshots(state: &State) -> Result<BTreeMap<Sha256, (Sha256, bool)>, String> {
    let mut snapshots = BTreeMap::new();
    for previous in state.publication[3].as_array().into_iter().flatten() {
        let snapshot = referenced(&previous["snapshot"])?;
        snapshots.insert(snapshot, (sha256(&previous["contentHash"])?, false));
    }
    snapshots.insert(state.snapshot, (state.content, true));
    Ok(snapshots)
}

/// Returns the snapshots of the states that a ring keeps: that at which it is, and those that wait.
fn kept_by_ring(state: &State) -> Result<Vec<Sha256>, String> {
    let document: Value =
        serde_json::from_slice(&state.bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    let ring = &document["source"]["ring"];
    let waiting = ring["waiting"].as_array().into_iter().flatten();
    let at = Some(&ring["at"]).filter(|at| !at.is_null());
    let mut kept = Vec::new();
    for state in waiting.chain(at) {
        kept.push(referenced(&state["snapshot"])?);
    }
    Ok(kept)
}
