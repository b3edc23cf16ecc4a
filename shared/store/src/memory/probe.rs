use std::{collections::BTreeMap, mem::take};

use bytes::Bytes;
use layout::{Key, Sha256};

use super::{Action, Call, MemoryStore};
use crate::Version;

/// What tests ask of a store behind its back: neither hooked nor logged.
impl MemoryStore {
    /// All that was asked since the log was last taken, in order, whatever came of it.
    pub fn log(&self) -> Vec<Call> {
        self.state().log.clone()
    }

    /// As [`MemoryStore::log`], and starts a new log.
    pub fn take_log(&self) -> Vec<Call> {
        take(&mut self.state().log)
    }

    /// How many operations of the log are of this kind.
    pub fn count(&self, is: impl Fn(&Action) -> bool) -> usize {
        self.state().log.iter().filter(|call| is(&call.action)).count()
    }

    /// The keys of the log that somebody tried to write or delete, sorted, each once.
    pub fn written(&self) -> Vec<Key> {
        let wrote = |call: &&Call| matches!(call.action, Action::Put(_) | Action::Commit(_) | Action::Delete);
        let state = self.state();
        let mut keys: Vec<Key> = state
            .log
            .iter()
            .filter(wrote)
            .filter_map(|call| call.key.clone())
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// All objects.
    pub fn objects(&self) -> BTreeMap<Key, Bytes> {
        let state = self.state();
        state
            .objects
            .iter()
            .map(|(key, entry)| (key.clone(), entry.bytes.clone()))
            .collect()
    }

    /// Gives an object other bytes, as a failing disk does. Its size and version stay as they were.
    pub fn corrupt(&self, key: &Key, bytes: impl Into<Bytes>) {
        if let Some(entry) = self.state().objects.get_mut(key) {
            entry.bytes = bytes.into();
        }
    }

    /// Cuts an object short, as a file system may do in a crash: its size is told as it is now, its date as it was.
    pub fn truncate(&self, key: &Key, length: usize) {
        if let Some(entry) = self.state().objects.get_mut(key) {
            entry.bytes.truncate(length);
            entry.info.size = entry.bytes.len() as u64;
            entry.info.version = Version(Sha256::of(&entry.bytes).to_string());
        }
    }

    /// Loses an object.
    pub fn lose(&self, key: &Key) {
        self.state().objects.remove(key);
    }

    /// Cuts the power: every immutable object that no flush has made durable is lost, unless `survives` says that the
    /// disk had it by chance.
    pub fn cut_power(&self, survives: impl Fn(&Key) -> bool) {
        let mut state = self.state();
        for key in take(&mut state.unflushed) {
            if !survives(&key) {
                state.objects.remove(&key);
            }
        }
    }
}
