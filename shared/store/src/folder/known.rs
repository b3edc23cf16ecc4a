use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use model::Key;

use super::Stamp;
use crate::Version;

/// Versions of the mutable objects as last read. While the stamp of a file stays, its content need not be read again.
/// There are few entries: one for each mutable object that was read.
#[derive(Debug, Default)]
pub(super) struct Known(RwLock<HashMap<Key, (Stamp, Version)>>);

impl Known {
    /// Returns the version of an object whose file has this stamp, if it is known.
    pub(super) fn version(&self, key: &Key, stamp: &Stamp) -> Option<Version> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known
            .get(key)
            .filter(|(seen, _)| seen == stamp)
            .map(|(_, version)| version.clone())
    }

    /// Remembers a version. The stamp must have settled before the content was read (see [`Stamp::is_settled`]).
    pub(super) fn learn(&self, key: &Key, stamp: Stamp, version: &Version) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(key.clone(), (stamp, version.clone()));
    }

    pub(super) fn forget(&self, key: &Key) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
