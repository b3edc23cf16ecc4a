use std::{
    collections::HashMap,
    fs::Metadata,
    os::unix::fs::MetadataExt as _,
    time::{Duration, SystemTime},
};

use model::Key;
use parking_lot::RwLock;

use crate::{ObjectInfo, Version};

/// Age of the last change of a file from which its stamp is trusted. It is far above the 4 ms to 10 ms in which the file times
/// of a kernel advance, and covers file systems that keep whole seconds.
const SETTLED: Duration = Duration::from_secs(1);

/// Facts that the file system tells about a file without reading it. A file that was replaced has another stamp, except for
/// a file that changes twice within one tick of the clock (see [`Stamp::is_settled`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// True if a stamp taken at `now` tells the file from all later ones. A younger stamp may not: the next file can get
    /// the same inode number in the same tick (the "racily clean" entries of git).
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        now.duration_since(self.modified()).is_ok_and(|age| age >= SETTLED)
    }

    /// Returns the version of an immutable object. Its hash is in its name, so its bytes need not be hashed again. The stamp
    /// only tells a repaired file from the damaged one.
    pub(super) fn version(&self) -> Version {
        let (seconds, nanos) = self.modified;
        Version(format!("{:x}-{seconds:x}.{nanos:x}-{:x}", self.size, self.inode))
    }

    pub(super) fn info(&self, version: Version) -> ObjectInfo {
        ObjectInfo {
            size: self.size,
            version,
            modified: self.modified(),
        }
    }

    /// Returns the time at which the file got its content and its name. A rename changes the latter time only: a writer
    /// that was stopped between its writing and its renaming must not make an object that is born old.
    pub(super) fn modified(&self) -> SystemTime {
        time(self.modified).max(time(self.changed))
    }
}

/// Converts seconds and nanoseconds since 1970. An earlier time counts as 1970.
fn time(since_epoch: (i64, i64)) -> SystemTime {
    let (seconds, nanos) = since_epoch;
    let seconds = Duration::from_secs(seconds.try_into().unwrap_or(0));
    SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(nanos.try_into().unwrap_or(0))
}

/// Versions of the mutable objects as last read. While the stamp of a file stays, its content need not be read again.
/// There are few entries: one for each mutable object that was read.
#[derive(Debug, Default)]
pub(super) struct Known(RwLock<HashMap<Key, (Stamp, Version)>>);

impl Known {
    /// Returns the version of an object whose file has this stamp, if it is known.
    pub(super) fn version(&self, key: &Key, stamp: &Stamp) -> Option<Version> {
        let known = self.0.read();
        known
            .get(key)
            .filter(|(seen, _)| seen == stamp)
            .map(|(_, version)| version.clone())
    }

    /// Remembers a version. The stamp must have settled before the content was read (see [`Stamp::is_settled`]).
    pub(super) fn learn(&self, key: &Key, stamp: Stamp, version: &Version) {
        let mut known = self.0.write();
        known.insert(key.clone(), (stamp, version.clone()));
    }

    pub(super) fn forget(&self, key: &Key) {
        self.0.write().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_one_second_after_the_last_change_is_settled() {
        let file = tempfile::tempfile().unwrap();
        let stamp = Stamp::of(&file.metadata().unwrap());
        let changed = time(stamp.changed);
        assert!(!stamp.is_settled(changed));
        assert!(!stamp.is_settled(changed + Duration::from_millis(999)));
        assert!(stamp.is_settled(changed + SETTLED));
        assert!(!stamp.is_settled(changed - SETTLED), "the clock went back");
    }
}
