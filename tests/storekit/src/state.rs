use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use bytes::Bytes;
use model::{Key, Sha256};

use crate::Call;
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
        // Equal bytes have equal versions. The folder promises no more, so tests must not rely on more.
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
