//! Folder as a store. The key of an object is the path of its file, so any static file server can
//! serve the mirror.

mod buffer;
mod dir;
mod list;
mod publish;
mod read;
mod temp;

pub use read::file_chunks;

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream, stream::BoxStream};
use model::Key;
use rustix::fs::Mode;
use tokio::task::{JoinError, spawn_blocking};

use crate::folder::dir::Dir;
use crate::folder::publish::Unflushed;
use crate::folder::read::ReadMode;
use crate::folder::temp::{StagedFile, Temp, remove_leftovers};
use crate::{
    Condition, Fetched, Get, Listed, ObjectInfo, Operation, ReadStore, Staged, Stat, Store,
    StoreError, Version,
};

/// Store in a folder. Clones share it. Processes share it, too, on file systems with locks between
/// processes.
#[derive(Debug, Clone)]
pub struct FolderStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: Dir,
    path: PathBuf,
    access: Access,
    unflushed: Unflushed,
}

/// Access for which a folder was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadOnly,
    ReadWrite,
}

#[async_trait]
impl ReadStore for FolderStore {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        if let Ok(found) = self.inner.get(key, &get, ReadMode::CacheOnly) {
            return found;
        }
        self.with_key(Operation::Get, key, move |inner, key| {
            inner.get(key, &get, ReadMode::Blocking)
        })
        .await?
    }

    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        if let Ok(opened) = self.inner.open(key, ReadMode::CacheOnly) {
            return Ok(Some(opened.info));
        }
        self.with_key(Operation::Get, key, Inner::find_file).await
    }
}

#[async_trait]
impl Store for FolderStore {
    async fn stat(&self, key: &Key) -> Result<Stat, StoreError> {
        self.with_key(Operation::Get, key, Inner::stat).await
    }

    async fn put(
        &self,
        key: &Key,
        bytes: Bytes,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        let put = self.with_key(Operation::Put, key, move |inner, key| {
            inner.put(key, &bytes, &condition)
        });
        put.await?.ok_or_else(|| StoreError::conflict(key))
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        let create = self.blocking(Operation::Put, "a staged object", |inner| {
            Temp::create(inner.temp_folder()?)
        });
        Ok(Box::new(StagedFile {
            store: self.clone(),
            temp: Some(create.await?),
            pending: Vec::new(),
        }))
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.blocking(Operation::Flush, "the store", Inner::flush)
            .await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.with_key(Operation::Delete, key, Inner::delete).await
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        let store = self.clone();
        let prefix = prefix.to_owned();
        // The whole tree at once, when the stream is first read.
        let listed = async move {
            let place = prefix.clone();
            let list = store.blocking(Operation::List, place, move |inner| inner.list(&prefix));
            Ok(stream::iter(list.await?).map(Ok))
        };
        stream::once(listed).try_flatten().boxed()
    }
}

impl FolderStore {
    /// Works on an object as [`FolderStore::blocking`] does.
    async fn with_key<T: Send + 'static>(
        &self,
        operation: Operation,
        key: &Key,
        work: impl FnOnce(&Inner, &Key) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let own = key.clone();
        self.blocking(operation, key, move |inner| work(inner, &own))
            .await
    }

    /// Works on a thread that may wait for the disk. Work that was started is finished, also if its
    /// caller has gone.
    #[expect(
        clippy::disallowed_methods,
        reason = "only files of the store are read and written"
    )]
    async fn blocking<T: Send + 'static>(
        &self,
        operation: Operation,
        key: impl Display,
        work: impl FnOnce(&Inner) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let key = key.to_string();
        let inner = Arc::clone(&self.inner);
        let result = joined(spawn_blocking(move || work(&inner)).await);
        result.map_err(|source| match (operation, source.kind()) {
            (Operation::Get, io::ErrorKind::NotFound) => StoreError::not_found(&key),
            (_, io::ErrorKind::PermissionDenied) => StoreError::denied(operation, &key, source),
            _ => StoreError::failed(operation, &key, source),
        })
    }
}

/// Returns the result of the work. A panic goes on in the caller. Only the end of the runtime
/// cancels work.
fn joined<T>(result: Result<io::Result<T>, JoinError>) -> io::Result<T> {
    result.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => Err(io::Error::other(error)),
    })
}

/// Splits a path into its folder (empty for the root) and its last name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Folder of temporary files. It is inside the store because a file can only be renamed within its
/// file system.
const TEMP: &str = ".tmp";

impl FolderStore {
    /// Opens a folder for reading and writing, and makes it if it is missing. Removes what killed
    /// writers left behind.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if the folder cannot be made, read or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        Self::open_writable(path)
            .map_err(|source| StoreError::failed(Operation::Open, &path.display(), source))
    }

    /// Opens a folder for reading only. It may lie on a read-only file system. Every write fails.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if the folder is missing or cannot be read.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        Self::open_at(path, Access::ReadOnly).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => {
                StoreError::failed(Operation::Open, &path.display(), "there is no such folder")
            }
            _ => StoreError::failed(Operation::Open, &path.display(), source),
        })
    }

    fn open_writable(path: &Path) -> io::Result<Self> {
        create(&std::path::absolute(path)?)?;
        let store = Self::open_at(path, Access::ReadWrite)?;
        let temp = store.inner.temp_folder()?;
        let entries = store.inner.path.join(TEMP).read_dir()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        remove_leftovers(&temp, names, SystemTime::now());
        Ok(store)
    }

    fn open_at(path: &Path, access: Access) -> io::Result<Self> {
        // A later change of the working directory must not move the store.
        let path: PathBuf = std::path::absolute(path)?;
        let inner = Inner {
            root: Dir::root(&path)?,
            path,
            access,
            unflushed: Unflushed::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }
}

impl Inner {
    /// Opens the folder of temporary files, and makes it if it is missing.
    ///
    /// It is opened anew each time, so that a store goes on when an administrator has removed it.
    /// Other users may not read it, because a web server over the store must not serve half an
    /// object.
    pub(super) fn temp_folder(&self) -> io::Result<Arc<Dir>> {
        self.must_be_writable()?;
        self.root.create(TEMP, Mode::RWXU).map(Arc::new)
    }

    pub(super) fn must_be_writable(&self) -> io::Result<()> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly => {
                let why = "the store was opened for reading only";
                Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, why))
            }
        }
    }
}

/// Makes a folder and all folders above it, and makes their entries durable.
fn create(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let Some(above) = path.parent() else {
        return Ok(());
    };
    create(above)?;
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Dir::root(above)?.0.sync_all(),
    }
}
