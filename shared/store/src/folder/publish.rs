use std::{fs::File, io};

use model::Key;
use rustix::fs::{Mode, OFlags};

use super::{Inner, ReadMode, Temp, split};
use crate::{Condition, Version};

/// Number of times that a publication makes its folder. A delete removes the folder that it empties, maybe between our
/// making it and our putting the file there. That does not happen 100 times in a row unless something else is wrong.
const ATTEMPTS: u32 = 100;

const LOCK: &str = "lock";

impl Inner {
    /// Writes a whole object. Returns `None` if the condition does not hold.
    pub(super) fn put(&self, key: &Key, bytes: &[u8], condition: &Condition) -> io::Result<Option<Version>> {
        let folder = self.temp_folder()?;
        if *condition == Condition::CreateOnly && self.exists(key) {
            if key.is_immutable() {
                self.remember(key)?;
            }
            return Ok(None);
        }
        let mut temp = Temp::create(folder)?;
        temp.write(bytes)?;
        self.publish(temp, key, condition)
    }

    /// True if there is an object already, so that it need not be written. A race is decided by the rename, not here.
    fn exists(&self, key: &Key) -> bool {
        self.path.join(key.to_string()).symlink_metadata().is_ok()
    }

    /// Gives a finished file its key. Returns `None` if the condition does not hold.
    pub(super) fn publish(&self, mut temp: Temp, key: &Key, condition: &Condition) -> io::Result<Option<Version>> {
        temp.sync()?;
        let version = if key.is_immutable() {
            temp.stamp()?.version()
        } else {
            temp.content_version()?
        };
        let done = self.publish_locked(&mut temp, key, condition)?;
        // Also after a conflict: the caller may now rely on an object that another process has not flushed yet.
        if done || key.is_immutable() {
            self.remember(key)?;
        }
        Ok(done.then_some(version))
    }

    fn publish_locked(&self, temp: &mut Temp, key: &Key, condition: &Condition) -> io::Result<bool> {
        let at_any_time = key.is_immutable() && !matches!(condition, Condition::Replace(_));
        // A write between the comparison of another writer and its rename would be lost without a trace.
        let _lock = if at_any_time { None } else { Some(self.lock_mutable()?) };
        if let Condition::Replace(expected) = condition
            && self.version(key)?.as_ref() != Some(expected)
        {
            return Ok(false);
        }
        self.place(temp, key, condition)
    }

    /// Renames the file to its key. Tries again when the folder has gone between two steps.
    fn place(&self, temp: &mut Temp, key: &Key, condition: &Condition) -> io::Result<bool> {
        let path = key.to_string();
        for _ in 1..ATTEMPTS {
            match self.place_once(temp, &path, condition) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                placed => return placed,
            }
        }
        self.place_once(temp, &path, condition)
    }

    fn place_once(&self, temp: &mut Temp, path: &str, condition: &Condition) -> io::Result<bool> {
        let (folder, name) = split(path);
        let folder = self.root.descend_or_create(folder)?;
        match condition {
            Condition::CreateOnly => temp.publish_new(&folder, name),
            Condition::Always | Condition::Replace(_) => temp.publish_over(&folder, name).map(|()| true),
        }
    }

    fn version(&self, key: &Key) -> io::Result<Option<Version>> {
        match self.stat_file(key, ReadMode::Blocking) {
            Ok(info) => Ok(Some(info.version)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Locks the mutable objects for one change. The kernel frees the lock when its holder closes the file or dies.
    ///
    /// Every caller opens the file anew, because only then do two threads of one process exclude each other, too.
    pub(super) fn lock_mutable(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        let lock = self.temp_folder()?.open_with(LOCK, flags, Mode::RUSR | Mode::WUSR)?;
        lock.lock()?;
        Ok(lock)
    }
}
