use std::{fs::File, io, path::Path};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

/// Mode of new folders: all users may read, because a web server over the folder has to. The umask
/// may take that away.
const FOLDER_MODE: Mode = Mode::from_bits_truncate(0o777);

/// Open folder. Every step below the root of the store goes from an open folder to one of its
/// entries, and never through a symbolic link. So nothing in the store can lead a read or a write
/// out of it.
#[derive(Debug)]
pub(super) struct Dir(pub(super) File);

impl Dir {
    /// Opens the root itself. Symbolic links are followed here, because the operator chose the
    /// path.
    pub(super) fn root(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self(root.into()))
    }

    /// Opens the folder at a path of plain names. The empty path is this folder.
    pub(super) fn descend(&self, path: &str) -> io::Result<Self> {
        self.walk(path, Self::enter)
    }

    /// Opens a folder as [`Dir::descend`] does, and makes the folders that are missing.
    pub(super) fn descend_or_create(&self, path: &str) -> io::Result<Self> {
        self.walk(path, |dir, name| match dir.enter(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => dir.create(name, FOLDER_MODE),
            entered => entered,
        })
    }

    fn walk(&self, path: &str, step: impl Fn(&Self, &str) -> io::Result<Self>) -> io::Result<Self> {
        let mut dir = Self(self.0.try_clone()?);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            dir = step(&dir, name)?;
        }
        Ok(dir)
    }

    /// Makes a folder and opens it. Another writer may make it at the same time.
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

    /// Opens a regular file for reading. Any other kind of entry is an error.
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
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.0, name, flags, mode) {
            Ok(file) => Ok(file.into()),
            Err(Errno::LOOP) => Err(io::Error::other(
                "it is a symbolic link, and a store follows none",
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file. Returns true if there was one.
    pub(super) fn remove(&self, name: &str) -> io::Result<bool> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an empty folder.
    pub(super) fn remove_dir(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }
}
