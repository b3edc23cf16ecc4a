use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::time::SystemTime;

use bytes::Bytes;
use model::{Key, Sha256};

use crate::{Action, Call, MemoryStore};
use store::{Condition, ObjectInfo, Version};

/// Object in memory, with what `head` tells of it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) bytes: Bytes,
    pub(crate) info: ObjectInfo,
}

/// All objects and calls of a memory store.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<Key, Entry>,
    /// Immutable objects that a power cut takes away.
    pub(crate) unflushed: BTreeSet<Key>,
    pub(crate) calls: u64,
    pub(crate) log: Vec<Call>,
}

impl State {
    /// Writes an object. Returns `None` if the condition does not hold.
    pub(crate) fn put(
        &mut self,
        key: &Key,
        bytes: Bytes,
        condition: &Condition,
        modified: SystemTime,
    ) -> Option<Version> {
        let held = match (condition, self.objects.get(key)) {
            (Condition::Always, _) | (Condition::CreateOnly, None) => true,
            (Condition::CreateOnly, Some(_)) | (Condition::Replace(_), None) => false,
            (Condition::Replace(version), Some(entry)) => entry.info.version == *version,
        };
        if !held {
            return None;
        }
        // Equal bytes have equal versions. The folder promises no more, so tests must not rely on
        // more.
        let version = Version(Sha256::of(&bytes).to_string());
        let info = ObjectInfo {
            size: bytes.len() as u64,
            version: version.clone(),
            modified,
        };
        self.objects.insert(key.clone(), Entry { bytes, info });
        if key.is_immutable() {
            self.unflushed.insert(key.clone());
        }
        Some(version)
    }
}

/// Questions and damage of tests. These calls are neither hooked nor logged.
impl MemoryStore {
    /// Returns all calls since the log was last taken, in order, also those that failed.
    pub fn log(&self) -> Vec<Call> {
        self.state().log.clone()
    }

    /// Returns the log as [`MemoryStore::log`] does, and starts a new one.
    pub fn take_log(&self) -> Vec<Call> {
        take(&mut self.state().log)
    }

    /// Returns the number of calls in the log whose operation is one of these.
    pub fn count(&self, is: impl Fn(&Action) -> bool) -> usize {
        self.state()
            .log
            .iter()
            .filter(|call| is(&call.action))
            .count()
    }

    /// Returns the keys of all writes and deletes in the log, sorted, each once.
    pub fn written(&self) -> Vec<Key> {
        let mut keys = BTreeSet::new();
        for call in &self.state().log {
            if let Action::Put(_) | Action::Commit(_) | Action::Delete = call.action {
                keys.extend(call.key.clone());
            }
        }
        keys.into_iter().collect()
    }

    /// Returns all objects with their bytes.
    pub fn objects(&self) -> BTreeMap<Key, Bytes> {
        let state = self.state();
        let objects = state.objects.iter();
        objects
            .map(|(key, entry)| (key.clone(), entry.bytes.clone()))
            .collect()
    }

    /// Gives an object other bytes, as a failing disk does. Its size and version stay.
    pub fn corrupt(&self, key: &Key, bytes: impl Into<Bytes>) {
        if let Some(entry) = self.state().objects.get_mut(key) {
            entry.bytes = bytes.into();
        }
    }

    /// Cuts an object short, as a file system may do in a crash. Its size and version change, its
    /// time stays.
    pub fn truncate(&self, key: &Key, length: usize) {
        if let Some(entry) = self.state().objects.get_mut(key) {
            entry.bytes.truncate(length);
            entry.info.size = entry.bytes.len() as u64;
            entry.info.version = Version(Sha256::of(&entry.bytes).to_string());
        }
    }

    /// Removes an object without a trace, as a failing disk does.
    pub fn lose(&self, key: &Key) {
        self.state().objects.remove(key);
    }

    /// Cuts the power. Every immutable object that no flush has made durable is lost, unless
    /// `survives` keeps it: a disk may have it by chance.
    pub fn cut_power(&self, survives: impl Fn(&Key) -> bool) {
        let mut state = self.state();
        for key in take(&mut state.unflushed) {
            if !survives(&key) {
                state.objects.remove(&key);
            }
        }
    }
}
