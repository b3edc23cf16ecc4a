use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustix::fs::Mode;

use super::{Dir, FolderStore, Inner, temp::sweep};
use crate::{Operation, StoreError};

/// Inside the store, because a file can only be renamed within its file system.
const TEMP: &str = ".tmp";

impl FolderStore {
    /// Opens a folder for reading and writing, making it if it is not there. What killed writers left behind is
    /// removed.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it cannot be made, read or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        Self::open_writable(path).map_err(|source| StoreError::failed(Operation::Open, &path.display(), source))
    }

    /// Opens a folder for reading only, which may lie on a read-only file system. Writing then fails.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it is not there or cannot be read.
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
        sweep(&temp, names, SystemTime::now());
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
    /// Opened anew each time, so that a store lives on when somebody tidies it away. Closed to others, because a web
    /// server over the folder must not serve half an object.
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

/// Makes a folder and those above it, durably.
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
