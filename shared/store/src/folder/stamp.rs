use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt as _,
    time::{Duration, SystemTime},
};

use crate::{ObjectInfo, Version};

/// How old the last change of a file must be before its stamp is trusted: far above the 4 ms to 10 ms in which a
/// kernel's file times advance, and the whole seconds of some file systems.
const SETTLED: Duration = Duration::from_secs(1);

/// What the file system says of a file without its being read. A file that was replaced has another stamp, save for a
/// file that changes twice within one tick of the clock (see [`Stamp::is_settled`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
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

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Whether a stamp taken at `now` tells the file from all later ones. A younger one may not: the inode number can
    /// be given to the file's successor in the same tick. (git's "racily clean" entries.)
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        let last = time(self.modified).max(time(self.changed));
        now.duration_since(last).is_ok_and(|age| age >= SETTLED)
    }

    /// The version of an immutable object. Its content is in its name, so its bytes need not be hashed; the stamp only
    /// tells a repaired file from the damaged one.
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

    pub(super) fn modified(&self) -> SystemTime {
        time(self.modified)
    }
}

/// Times before 1970 are nobody's write.
fn time((seconds, nanos): (i64, i64)) -> SystemTime {
    let seconds = Duration::from_secs(seconds.try_into().unwrap_or(0));
    SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(nanos.try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_settles_a_second_after_the_last_change() {
        let file = tempfile::tempfile().unwrap();
        let stamp = Stamp::of(&file.metadata().unwrap());
        let changed = time(stamp.changed);
        assert!(!stamp.is_settled(changed));
        assert!(!stamp.is_settled(changed + Duration::from_millis(999)));
        assert!(stamp.is_settled(changed + SETTLED));
        assert!(!stamp.is_settled(changed - SETTLED), "the clock went back");
    }
}
