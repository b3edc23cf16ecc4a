use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use model::Key;
use rustix::fs::{AtFlags, Mode, OFlags, linkat, renameat, statat};
use rustix::io::Errno;

use crate::folder::read::{content_version, modified};
use crate::folder::{Dir, FolderStore};
use crate::{Condition, Operation, Staged, StoreError, Version};

/// Mode of new files: all users may read, because a web server over the folder has to. The umask
/// may take that away.
const FILE_MODE: Mode = Mode::from_bits_truncate(0o666);

/// Start of the names of all temporary files.
const PREFIX: &str = "put-";

/// Name of the lock for new names, where the file system has no other way to keep one that is taken.
const NEW_LOCK: &str = "lock-new";

/// Age from which the leftover of a killed writer is removed. Its lock is free, but a living writer
/// needs a moment between making its file and locking it.
const LEFTOVER: Duration = Duration::from_mins(10);

/// File without a key. Dropping it removes it. Its lock tells others that its writer lives.
#[derive(Debug)]
pub(super) struct Temp {
    folder: Arc<Dir>,
    name: String,
    pub(super) file: File,
    published: bool,
}

impl Temp {
    pub(super) fn create(folder: Arc<Dir>) -> io::Result<Self> {
        let random = RandomState::new().build_hasher().finish();
        let name = format!("{PREFIX}{random:016x}");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = folder.open_with(&name, flags, FILE_MODE)?;
        let temp = Self {
            folder,
            name,
            file,
            published: false,
        };
        // Without locks it cannot be seen that a file is in use. Then `remove_leftovers` cannot
        // lock it either, and leaves it.
        let _ = temp.file.lock();
        Ok(temp)
    }

    /// Returns the version that the content has under a mutable key.
    pub(super) fn content_version(&mut self) -> io::Result<Version> {
        let mut content = Vec::new();
        self.file.rewind()?;
        self.file.read_to_end(&mut content)?;
        Ok(content_version(&content))
    }

    /// Moves the file to its name. Returns false if the name is taken and its file may not be
    /// replaced.
    pub(super) fn publish(&mut self, to: &Dir, name: &str, replaces: bool) -> io::Result<bool> {
        let renamed = match replaces {
            true => self.rename(to, name),
            false => self.rename_new(to, name),
        };
        match renamed {
            Ok(()) => self.published = true,
            Err(error) if !replaces && error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        Ok(self.published)
    }

    fn rename(&self, to: &Dir, name: &str) -> io::Result<()> {
        Ok(renameat(&self.folder.0, &self.name, &to.0, name)?)
    }

    /// Renames without replacing, or makes a hard link: some file systems can only do the one, some
    /// only the other, and those of removable disks often neither.
    fn rename_new(&self, to: &Dir, name: &str) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            use rustix::fs::{RenameFlags, renameat_with};
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(&self.folder.0, &self.name, &to.0, name, flags) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                done => return Ok(done?),
            }
        }
        match self.link_new(to, name) {
            Err(Errno::PERM | Errno::NOSYS | Errno::NOTSUP) => self.rename_locked(to, name),
            linked => Ok(linked?),
        }
    }

    /// Renames if the name is free. A lock keeps other writers out between the look and the rename.
    fn rename_locked(&self, to: &Dir, name: &str) -> io::Result<()> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        let lock = self.folder.open_with(NEW_LOCK, flags, FILE_MODE)?;
        // A file system without locks has one writer.
        let _ = lock.lock();
        match statat(&to.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(Errno::NOENT) => self.rename(to, name),
            Err(error) => Err(error.into()),
        }
    }

    fn link_new(&self, to: &Dir, name: &str) -> rustix::io::Result<()> {
        linkat(&self.folder.0, &self.name, &to.0, name, AtFlags::empty())?;
        // The object is complete under its key. If its second name stays, it is removed with the
        // leftovers.
        let _ = self.folder.remove(&self.name);
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.published
            && let Err(error) = self.folder.remove(&self.name)
        {
            tracing::warn!(name = self.name, %error, "cannot remove temporary file; it stays until the store is opened again");
        }
    }
}

/// Removes what killed writers left behind: files that are old and not locked.
pub(super) fn remove_leftovers(folder: &Dir, names: impl Iterator<Item = String>, now: SystemTime) {
    for name in names.filter(|name| name.starts_with(PREFIX)) {
        match remove_leftover(folder, &name, now) {
            Ok(true) => tracing::info!(name, "removed temporary file of a killed writer"),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(name, %error, "cannot remove temporary file of a killed writer");
            }
        }
    }
}

fn remove_leftover(folder: &Dir, name: &str, now: SystemTime) -> io::Result<bool> {
    let file = match folder.open(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let age = now.duration_since(modified(&file.metadata()?));
    let is_old = age.is_ok_and(|age| age >= LEFTOVER);
    if !is_old || file.try_lock().is_err() {
        return Ok(false);
    }
    folder.remove(name)
}

/// Number of bytes that are collected before a thread is borrowed to write them.
const BATCH: usize = 256 << 10;

/// Name of an object without a key, for errors.
const NAME: &str = "a staged object";

/// Temporary file, and the bytes that are not written to it yet.
pub(super) struct StagedFile {
    pub(super) store: FolderStore,
    /// `None` once a write failed or was dropped half way: the end of the file is not known then.
    pub(super) temp: Option<Temp>,
    pub(super) pending: Vec<u8>,
}

impl StagedFile {
    /// Takes the file, and the bytes that are to be written to it.
    fn take(&mut self) -> Result<(Temp, Vec<u8>), StoreError> {
        let pending = std::mem::take(&mut self.pending);
        match self.temp.take() {
            Some(temp) => Ok((temp, pending)),
            None => {
                let reason = "an earlier write to it did not succeed";
                Err(StoreError::failed(Operation::Put, &NAME, reason))
            }
        }
    }
}

#[async_trait]
impl Staged for StagedFile {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.pending.extend_from_slice(&bytes);
        if self.pending.len() < BATCH {
            return Ok(());
        }
        let (mut temp, pending) = self.take()?;
        let write = self.store.blocking(Operation::Put, NAME, move |_| {
            temp.file.write_all(&pending)?;
            Ok(temp)
        });
        self.temp = Some(write.await?);
        Ok(())
    }

    async fn commit(
        mut self: Box<Self>,
        key: &Key,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        let (mut temp, pending) = self.take()?;
        let commit = self.store.with_key(Operation::Put, key, move |inner, key| {
            temp.file.write_all(&pending)?;
            inner.publish(temp, key, &condition)
        });
        commit.await?.ok_or_else(|| StoreError::conflict(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Arc<Dir>) {
        let folder = tempfile::tempdir().unwrap();
        let dir = Arc::new(Dir::root(folder.path()).unwrap());
        (folder, dir)
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    fn temp(dir: &Arc<Dir>, content: &str) -> Temp {
        let mut temp = Temp::create(Arc::clone(dir)).unwrap();
        temp.file.write_all(content.as_bytes()).unwrap();
        temp
    }

    #[test]
    fn link_new_on_a_taken_name_keeps_the_first() {
        let (folder, dir) = folder();
        let first = temp(&dir, "first");
        first.link_new(&dir, "a").unwrap();
        assert_eq!(temp(&dir, "second").link_new(&dir, "a"), Err(Errno::EXIST));
        drop(first);
        assert_eq!(std::fs::read(folder.path().join("a")).unwrap(), b"first");
        assert_eq!(names(&folder), ["a"]);
    }

    #[test]
    fn rename_locked_on_a_taken_name_keeps_the_first() {
        let (folder, dir) = folder();
        let mut first = temp(&dir, "first");
        first.rename_locked(&dir, "a").unwrap();
        first.published = true;
        let second = temp(&dir, "second");
        let refused = second.rename_locked(&dir, "a").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        drop(second);
        assert_eq!(std::fs::read(folder.path().join("a")).unwrap(), b"first");
        // Of many writers at once one wins.
        let writers = (0..8).map(|number| {
            let dir = Arc::clone(&dir);
            std::thread::spawn(move || {
                let mut temp = temp(&dir, &format!("{number}"));
                temp.published = temp.rename_locked(&dir, "b").is_ok();
                temp.published
            })
        });
        let writers: Vec<_> = writers.collect();
        let won = writers.into_iter().filter_map(|writer| writer.join().ok());
        assert_eq!(won.filter(|won| *won).count(), 1);
        let mut left = names(&folder);
        left.sort();
        assert_eq!(left, ["a", "b", NEW_LOCK]);
    }

    #[test]
    fn remove_leftovers_removes_old_unlocked_files_only() {
        let (folder, dir) = folder();
        let held = temp(&dir, "held");
        std::fs::write(folder.path().join("put-left"), "x").unwrap();
        std::fs::write(folder.path().join("lock"), "").unwrap();
        let now = SystemTime::now();
        remove_leftovers(&dir, names(&folder).into_iter(), now);
        assert_eq!(names(&folder).len(), 3, "all are young");
        remove_leftovers(&dir, names(&folder).into_iter(), now + LEFTOVER * 2);
        let mut left = names(&folder);
        left.sort();
        assert_eq!(left, ["lock", &held.name]);
    }
}
