use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};

use model::Key;
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};

use crate::folder::read::file_version;
use crate::folder::{Dir, Inner, Temp, split};
use crate::{Condition, Version};

/// Number of times that a publication makes its folder. A delete removes the folder that it
/// empties, maybe between our making it and our putting the file there. That does not happen 100
/// times in a row unless something else is wrong.
const ATTEMPTS: u32 = 100;

const LOCK: &str = "lock";

impl Inner {
    /// Writes a whole object. Returns `None` if the condition does not hold.
    pub(super) fn put(
        &self,
        key: &Key,
        bytes: &[u8],
        condition: &Condition,
    ) -> io::Result<Option<Version>> {
        let folder = self.temp_folder()?;
        // What is there already need not be written. A race is decided by the rename, not here.
        let path = self.path.join(key.to_string());
        if *condition == Condition::CreateOnly && path.symlink_metadata().is_ok() {
            if key.is_immutable() {
                self.remember(key)?;
            }
            return Ok(None);
        }
        let mut temp = Temp::create(folder)?;
        temp.file.write_all(bytes)?;
        self.publish(temp, key, condition)
    }

    /// Gives a finished file its key. Returns `None` if the condition does not hold.
    pub(super) fn publish(
        &self,
        mut temp: Temp,
        key: &Key,
        condition: &Condition,
    ) -> io::Result<Option<Version>> {
        // Before the file gets its key, so that every object is whole, also after a power cut.
        temp.file.sync_data()?;
        let version = if key.is_immutable() {
            file_version(&temp.file.metadata()?)
        } else {
            temp.content_version()?
        };
        let done = self.publish_locked(&mut temp, key, condition)?;
        // Also after a conflict: the caller may now rely on an object that another process has not
        // flushed yet.
        if done || key.is_immutable() {
            self.remember(key)?;
        }
        if !done {
            return Ok(None);
        }
        Ok(Some(version))
    }

    fn publish_locked(
        &self,
        temp: &mut Temp,
        key: &Key,
        condition: &Condition,
    ) -> io::Result<bool> {
        let at_any_time = key.is_immutable() && !matches!(condition, Condition::Replace(_));
        // A write between the comparison of another writer and its rename would be lost without a
        // trace.
        let _lock = if at_any_time {
            None
        } else {
            Some(self.lock_mutable()?)
        };
        if let Condition::Replace(expected) = condition {
            let found = self.find_file(key)?;
            if found.is_none_or(|found| found.version != *expected) {
                return Ok(false);
            }
        }
        self.place(temp, key, condition)
    }

    /// Renames the file to its key. Tries again when the folder has gone between two steps.
    fn place(&self, temp: &mut Temp, key: &Key, condition: &Condition) -> io::Result<bool> {
        let path = key.to_string();
        let (folder, name) = split(&path);
        let replaces = *condition != Condition::CreateOnly;
        let mut repeats = 1..ATTEMPTS;
        loop {
            let folder = self.root.descend_or_create(folder);
            match folder.and_then(|folder| temp.publish(&folder, name, replaces)) {
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && repeats.next().is_some() => {}
                placed => return placed,
            }
        }
    }

    /// Locks the mutable objects for one change. The kernel frees the lock when its holder closes
    /// the file or dies.
    ///
    /// Every caller opens the file anew, because only then do two threads of one process exclude
    /// each other, too.
    pub(super) fn lock_mutable(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        let mode = Mode::RUSR | Mode::WUSR;
        let lock = self.temp_folder()?.open_with(LOCK, flags, mode)?;
        lock.lock()?;
        Ok(lock)
    }
}

/// Folders with entries that a power cut could still take away. A flush syncs each of them once.
///
/// Contents are made durable before they get a key, each by itself and several at a time. Measured,
/// that costs less than all of them at the end, and no object is ever torn.
#[derive(Debug, Default)]
pub(super) struct Unflushed {
    folders: Mutex<BTreeSet<String>>,
    /// Held during a flush. A second flush must not return before the first has made durable what
    /// both rely on.
    flushing: Mutex<()>,
}

impl Inner {
    /// Notes a new entry for the next flush. The entry of a mutable object is made durable at once.
    pub(super) fn remember(&self, key: &Key) -> io::Result<()> {
        let path = key.to_string();
        let (folder, _) = split(&path);
        if key.is_immutable() {
            let mut folders = self.unflushed.folders.lock();
            if !folders.contains(folder) {
                folders.extend(ancestors(folder).map(str::to_owned));
            }
            return Ok(());
        }
        ancestors(folder).try_for_each(|folder| sync(&self.root, folder))
    }

    /// Makes all noted entries durable. The next flush tries the folders of a failed one again.
    pub(super) fn flush(&self) -> io::Result<()> {
        let _flushing = self.unflushed.flushing.lock();
        let taken = std::mem::take(&mut *self.unflushed.folders.lock());
        let result = taken.iter().try_for_each(|folder| sync(&self.root, folder));
        if result.is_err() {
            self.unflushed.folders.lock().extend(taken);
        }
        result
    }
}

/// Makes the entries of a folder durable. A missing folder has no entries to lose.
fn sync(root: &Dir, folder: &str) -> io::Result<()> {
    match root.descend(folder).and_then(|folder| folder.0.sync_all()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Returns the folder and all folders above it, the root (the empty path) last. Each may have been
/// made for the one below.
pub(super) fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| {
        if folder.is_empty() {
            return None;
        }
        Some(split(folder).0)
    })
}

impl Inner {
    /// Removes an object, and the folders that this empties: a store of objects has no empty
    /// folders.
    pub(super) fn delete(&self, key: &Key) -> io::Result<()> {
        self.must_be_writable()?;
        let path = key.to_string();
        let (folder, name) = split(&path);
        let _lock = if key.is_immutable() {
            None
        } else {
            Some(self.lock_mutable()?)
        };
        let parent = match self.root.descend(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            parent => parent?,
        };
        if !parent.remove(name)? {
            return Ok(());
        }
        if !key.is_immutable() {
            self.remember(key)?;
        }
        self.prune(folder);
        Ok(())
    }

    /// Removes empty folders upwards. Stops at the first one that has entries or may not be
    /// removed.
    fn prune(&self, folder: &str) {
        for folder in ancestors(folder).filter(|folder| !folder.is_empty()) {
            let (above, name) = split(folder);
            let Ok(above) = self.root.descend(above) else {
                return;
            };
            if above.remove_dir(name).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_of_a_path_end_at_the_root() {
        assert_eq!(
            ancestors("a/b/c").collect::<Vec<_>>(),
            ["a/b/c", "a/b", "a", ""]
        );
        assert_eq!(ancestors("").collect::<Vec<_>>(), [""]);
    }
}
