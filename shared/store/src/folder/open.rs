use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustix::fs::Mode;

use super::{Dir, FolderStore, Inner, temp::remove_leftovers};
use crate::{Operation, StoreError};

/// Folder of temporary files. It is inside the store because a file can only be renamed within its file system.
const TEMP: &str = ".tmp";

impl FolderStore {
    /// Opens a folder for reading and writing, and makes it if it is missing. Removes what killed writers left behind.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if the folder cannot be made, read or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        Self::open_writable(path).map_err(|source| StoreError::failed(Operation::Open, &path.display(), source))
    }

    /// Opens a folder for reading only. It may lie on a read-only file system. Every write fails.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if the folder is missing or cannot be read.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        Self::open_at(path, false)
            .map_err(say_what_is_missing)
            .map_err(|source| StoreError::failed(Operation::Open, &path.display(), source))
    }

    fn open_writable(path: &Path) -> io::Result<Self> {
        create(&std::path::absolute(path)?)?;
        let store = Self::open_at(path, true)?;
        let temp = store.inner.temp_folder()?;
        let names = store.inner.path.join(TEMP).read_dir()?;
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        remove_leftovers(&temp, names, SystemTime::now());
        Ok(store)
    }

    fn open_at(path: &Path, writable: bool) -> io::Result<Self> {
        // A later change of the working directory must not move the store.
        let path: PathBuf = std::path::absolute(path)?;
        let inner = Inner {
            root: Dir::root(&path)?,
            path,
            writable,
            known: Default::default(),
            unflushed: Default::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Inner {
    /// Opens the folder of temporary files, and makes it if it is missing.
    ///
    /// It is opened anew each time, so that a store goes on when an administrator has removed it. Other users may not read
    /// it, because a web server over the store must not serve half an object.
    pub(super) fn temp_folder(&self) -> io::Result<Arc<Dir>> {
        self.must_be_writable()?;
        self.root.create(TEMP, Mode::RWXU).map(Arc::new)
    }

    pub(super) fn must_be_writable(&self) -> io::Result<()> {
        if self.writable {
            return Ok(());
        }
        let why = "the store was opened for reading only";
        Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, why))
    }
}

/// Makes a folder and all folders above it, and makes their entries durable.
fn create(path: &Path) -> io::Result<()> {
    let Some(above) = path.parent().filter(|_| !path.is_dir()) else {
        return Ok(());
    };
    create(above)?;
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Dir::root(above)?.sync(),
    }
}

fn say_what_is_missing(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound {
        io::Error::new(io::ErrorKind::NotFound, "there is no such folder")
    } else {
        error
    }
}
