//! A folder as a store: an object's key is its file's path, so any static file server can serve the mirror.

mod body;
mod delete;
mod dir;
mod durable;
mod known;
mod list;
mod open;
mod patience;
mod publish;
mod read;
mod staged;
mod stamp;
mod temp;

use std::{fmt::Display, io, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use layout::Key;
use tokio::task::{JoinError, spawn_blocking};

use self::{
    dir::Dir, durable::Unflushed, known::Known, patience::Patience, staged::StagedFile, stamp::Stamp, temp::Temp,
};
use crate::{Condition, Fetched, Get, Listed, ObjectInfo, Operation, Staged, Store, StoreError, Version};

/// A store in a folder. Clones share it; so do processes, on file systems with locks between processes.
#[derive(Debug, Clone)]
pub struct FolderStore {
    inner: Shared,
}

type Shared = Arc<Inner>;

#[derive(Debug)]
struct Inner {
    root: Dir,
    path: PathBuf,
    writable: bool,
    known: Known,
    unflushed: Unflushed,
}

#[async_trait]
impl Store for FolderStore {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        // Not handed to another thread: that would cost ten times what one look at a file's stamp does, and this is
        // asked on every request. The folder's entry is in the kernel's cache, as it was read before.
        if let Some(version) = &get.unless
            && self.inner.certainly_has(key, version)
        {
            return Ok(Fetched::NotModified);
        }
        if let Ok(found) = self.inner.get(key, &get, Patience::None) {
            return found;
        }
        let work = {
            let key = key.clone();
            move |inner: &Shared| inner.get(&key, &get, Patience::Endless)
        };
        self.blocking(Operation::Get, key, work).await?
    }

    async fn head(&self, key: &Key) -> Result<ObjectInfo, StoreError> {
        if let Ok(info) = self.inner.look(key, Patience::None) {
            return Ok(info);
        }
        let work = {
            let key = key.clone();
            move |inner: &Shared| inner.look(&key, Patience::Endless)
        };
        self.blocking(Operation::Get, key, work).await
    }

    async fn put(&self, key: &Key, bytes: Bytes, condition: Condition) -> Result<Version, StoreError> {
        let work = {
            let key = key.clone();
            move |inner: &Shared| inner.put(&key, &bytes, &condition)
        };
        let version = self.blocking(Operation::Put, key, work).await?;
        version.ok_or_else(|| StoreError::conflict(key))
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        let temp = self
            .blocking(Operation::Put, "a staged object", |inner| {
                Temp::create(inner.temp_folder()?)
            })
            .await?;
        Ok(Box::new(StagedFile::new(self.clone(), temp)))
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.blocking(Operation::Flush, "the store", |inner| inner.flush())
            .await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        let key = key.clone();
        self.blocking(Operation::Delete, &key.clone(), move |inner| inner.delete(&key))
            .await
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        list::list(self, prefix)
    }
}

impl FolderStore {
    /// Works on a thread that may wait for the disk. Work that was started is finished, even if nobody waits for it.
    async fn blocking<T: Send + 'static>(
        &self,
        operation: Operation,
        key: impl Display,
        work: impl FnOnce(&Shared) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let key = key.to_string();
        let inner = Arc::clone(&self.inner);
        let result = joined(spawn_blocking(move || work(&inner)).await);
        result.map_err(|source| failed(operation, &key, source))
    }
}

fn failed(operation: Operation, key: &str, source: io::Error) -> StoreError {
    match operation {
        Operation::Get if source.kind() == io::ErrorKind::NotFound => StoreError::not_found(&key),
        _ if source.kind() == io::ErrorKind::PermissionDenied => StoreError::denied(operation, &key, source),
        _ => StoreError::failed(operation, &key, source),
    }
}

/// A panic goes on in the caller; work is only ever cancelled by the end of the runtime.
fn joined<T>(result: Result<io::Result<T>, JoinError>) -> io::Result<T> {
    result.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => Err(io::Error::other(error)),
    })
}

/// A path as its folder (empty for the root) and its last name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
