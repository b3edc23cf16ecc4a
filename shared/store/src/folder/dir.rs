use std::{fs::File, io, path::Path};

use rustix::{
    fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat},
    io::Errno,
};

/// Everybody may read, as a web server over the folder has to; the umask may take that away.
const FOLDER_MODE: Mode = Mode::from_bits_truncate(0o777);

/// An open folder. All steps below the store's root go from an open folder to an entry of it and never through a
/// symbolic link, so nothing that lies in the store can lead a reader or a writer out of it.
#[derive(Debug)]
pub(super) struct Dir(File);

impl Dir {
    /// Opens the root itself, wherever the path leads: that is the operator's choice.
    pub(super) fn root(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self(root.into()))
    }

    pub(super) fn file(&self) -> &File {
        &self.0
    }

    /// Opens the folder at a path of plain names; the empty path is this folder.
    pub(super) fn descend(&self, path: &str) -> io::Result<Self> {
        self.walk(path, Self::enter)
    }

    /// As [`Dir::descend`], making the folders that are not there.
    pub(super) fn descend_or_create(&self, path: &str) -> io::Result<Self> {
        self.walk(path, |dir, name| match dir.enter(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => dir.create(name, FOLDER_MODE),
            entered => entered,
        })
    }

    fn walk(&self, path: &str, step: impl Fn(&Self, &str) -> io::Result<Self>) -> io::Result<Self> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        let Some(first) = names.next() else {
            return Ok(Self(self.0.try_clone()?));
        };
        names.try_fold(step(self, first)?, |dir, name| step(&dir, name))
    }

    /// Makes a folder, which another writer may do at the same time, and opens it.
    pub(super) fn create(&self, name: &str, mode: Mode) -> io::Result<Self> {
        match mkdirat(&self.0, name, mode) {
            Ok(()) | Err(Errno::EXIST) => self.enter(name),
            Err(error) => Err(error.into()),
        }
    }

    fn enter(&self, name: &str) -> io::Result<Self> {
        self.open_with(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map(Self)
    }

    /// Opens a regular file to be read.
    pub(super) fn open(&self, name: &str) -> io::Result<File> {
        // Without NONBLOCK, opening a FIFO would wait for a writer that never comes.
        let file = self.open_with(name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("it is not a regular file"))
        }
    }

    /// Opens an entry that is not a symbolic link.
    pub(super) fn open_with(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        match openat(&self.0, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode) {
            Ok(file) => Ok(file.into()),
            Err(Errno::LOOP) => Err(io::Error::other("it is a symbolic link, and a store follows none")),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file; whether there was one.
    pub(super) fn remove(&self, name: &str) -> io::Result<bool> {
        removed(unlinkat(&self.0, name, AtFlags::empty()))
    }

    /// Removes an empty folder; whether there was one.
    pub(super) fn remove_dir(&self, name: &str) -> io::Result<bool> {
        removed(unlinkat(&self.0, name, AtFlags::REMOVEDIR))
    }

    /// Makes the entries of the folder durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

fn removed(result: rustix::io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_step_goes_through_a_symbolic_link() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let inside = tempfile::tempdir().unwrap();
        symlink(outside.path(), inside.path().join("folder")).unwrap();
        symlink(outside.path().join("secret"), inside.path().join("file")).unwrap();
        let root = Dir::root(inside.path()).unwrap();
        assert!(root.descend("folder").is_err());
        assert!(root.descend_or_create("folder/below").is_err());
        let error = root.open("file").unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = Dir::root(folder.path()).unwrap();
        root.descend_or_create("a/b").unwrap();
        let error = root.descend("a").unwrap().open("b").unwrap_err();
        assert!(error.to_string().contains("regular"), "{error}");
    }

    #[test]
    fn what_is_removed_twice_was_there_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = Dir::root(folder.path()).unwrap();
        std::fs::write(folder.path().join("a"), "x").unwrap();
        root.descend_or_create("b").unwrap();
        assert_eq!([root.remove("a").unwrap(), root.remove("a").unwrap()], [true, false]);
        assert_eq!(
            [root.remove_dir("b").unwrap(), root.remove_dir("b").unwrap()],
            [true, false]
        );
    }
}
