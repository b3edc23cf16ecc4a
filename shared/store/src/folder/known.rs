use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use layout::Key;

use super::Stamp;
use crate::Version;

/// The versions of the mutable objects as last read: while a file's stamp stays, its content need not be read again.
/// There are as few entries as mutable objects were seen.
#[derive(Debug, Default)]
pub(super) struct Known(RwLock<HashMap<Key, (Stamp, Version)>>);

impl Known {
    /// The version of an object whose file has this stamp, if it is known.
    pub(super) fn version(&self, key: &Key, stamp: &Stamp) -> Option<Version> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known
            .get(key)
            .filter(|(seen, _)| seen == stamp)
            .map(|(_, version)| version.clone())
    }

    /// Remembers a version. The stamp must have been settled when the content was read.
    pub(super) fn learn(&self, key: &Key, stamp: Stamp, version: &Version) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(key.clone(), (stamp, version.clone()));
    }

    pub(super) fn forget(&self, key: &Key) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
