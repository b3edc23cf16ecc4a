use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use bytes::Bytes;
use model::{Key, Sha256};

use super::Call;
use crate::{Condition, ObjectInfo, Version};

/// Object in memory, with what `head` tells of it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) bytes: Bytes,
    pub(super) info: ObjectInfo,
}

/// All objects and calls of a memory store.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) objects: BTreeMap<Key, Entry>,
    /// Immutable objects that a power cut takes away.
    pub(super) unflushed: BTreeSet<Key>,
    pub(super) calls: u64,
    pub(super) log: Vec<Call>,
}

impl State {
    /// Writes an object. Returns `None` if the condition does not hold.
    pub(super) fn put(
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
        held.then(|| self.insert(key, bytes, modified))
    }

    fn insert(&mut self, key: &Key, bytes: Bytes, modified: SystemTime) -> Version {
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
        version
    }
}
