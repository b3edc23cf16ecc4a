//! A tree in a folder, for web servers over files.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use model::Key;
use store::StorePlace;

use crate::{
    TreeError, TreeForm, TreeTarget,
    index::INDEX,
    target::{FileBody, copy},
};

/// Folder of the tree for files that are being written, and for the lock.
const TEMPORARY: &str = ".tmp";

/// A tree in a folder.
#[derive(Debug)]
pub struct FolderTree {
    folder: PathBuf,
    /// Folder of the store, whose files can be linked.
    store: Option<PathBuf>,
    form: TreeForm,
    written: AtomicUsize,
    /// Held as long as the tree is open.
    _lock: fs::File,
}

impl FolderTree {
    /// Opens or creates the tree of a store, and locks it. With `gzip_only` texts are not written plain.
    ///
    /// # Errors
    /// [`TreeError::Store`], [`TreeError::Foreign`], [`TreeError::Busy`], and failures of the file system.
    pub fn open(folder: &Path, store: &StorePlace, gzip_only: bool) -> Result<Self, TreeError> {
        let at = folder.display().to_string();
        let store = match store {
            StorePlace::Folder(store) => Some(store.canonicalize().map_err(TreeError::file(&at))?),
            StorePlace::S3(_) => None,
        };
        // Nothing is created in a place that is refused.
        let existing = folder
            .ancestors()
            .find(|folder| folder.exists())
            .unwrap_or(Path::new("."));
        let existing = existing.canonicalize().map_err(TreeError::file(&at))?;
        let is_store = |store: &PathBuf| existing.starts_with(store) || folder.exists() && store.starts_with(&existing);
        if store.as_ref().is_some_and(is_store) {
            return Err(TreeError::Store(at));
        }
        fs::create_dir_all(folder).map_err(TreeError::file(&at))?;
        let folder = folder.canonicalize().map_err(TreeError::file(&at))?;
        let mut entries = fs::read_dir(&folder).map_err(TreeError::file(&at))?;
        let is_other = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() != TEMPORARY);
        if !folder.join(INDEX).exists() && entries.any(is_other) {
            return Err(TreeError::Foreign(at));
        }
        let temporary = folder.join(TEMPORARY);
        fs::create_dir_all(&temporary).map_err(TreeError::file(TEMPORARY))?;
        let lock = fs::File::create(temporary.join("lock")).map_err(TreeError::file(TEMPORARY))?;
        lock.try_lock().map_err(|_| TreeError::Busy(folder.clone()))?;
        // What a killed run left.
        for entry in fs::read_dir(&temporary).map_err(TreeError::file(TEMPORARY))?.flatten() {
            if entry.file_name() != "lock" {
                fs::remove_file(entry.path()).map_err(TreeError::file(TEMPORARY))?;
            }
        }
        Ok(Self {
            folder,
            store,
            form: if gzip_only {
                TreeForm::GzipFiles
            } else {
                TreeForm::Files
            },
            written: AtomicUsize::new(0),
            _lock: lock,
        })
    }

    fn temporary(&self) -> PathBuf {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        self.folder.join(TEMPORARY).join(number.to_string())
    }

    /// Gives a finished file its name.
    async fn place(&self, temporary: &Path, path: &str) -> io::Result<()> {
        let target = self.folder.join(path);
        match tokio::fs::rename(temporary, &target).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                tokio::fs::create_dir_all(target.parent().unwrap_or(&self.folder)).await?;
                tokio::fs::rename(temporary, &target).await
            }
            placed => placed,
        }
    }
}

#[async_trait]
impl TreeTarget for FolderTree {
    fn form(&self) -> TreeForm {
        self.form
    }

    async fn index(&self) -> Result<Option<Bytes>, TreeError> {
        match tokio::fs::read(self.folder.join(INDEX)).await {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TreeError::file(INDEX)(error)),
        }
    }

    async fn has(&self, path: &str, size: u64) -> bool {
        let found = tokio::fs::metadata(self.folder.join(path)).await;
        found.is_ok_and(|found| found.is_file() && found.len() == size)
    }

    async fn link(&self, path: &str, key: &Key) -> Result<bool, TreeError> {
        let Some(store) = &self.store else { return Ok(false) };
        let temporary = self.temporary();
        // File systems without links and other disks refuse in many ways. The copy that follows tells what is wrong.
        if tokio::fs::hard_link(store.join(key.to_string()), &temporary)
            .await
            .is_err()
        {
            return Ok(false);
        }
        // Renaming a link to the file that has the name already leaves both (rename(2)).
        let placed = self.place(&temporary, path).await;
        placed.map_err(TreeError::file(path))?;
        let _ = tokio::fs::remove_file(&temporary).await;
        Ok(true)
    }

    async fn write(&self, path: &str, _: &HeaderMap, body: FileBody) -> Result<u64, TreeError> {
        let temporary = self.temporary();
        let write = async {
            let size = copy(body, tokio::fs::File::create(&temporary).await?).await?;
            self.place(&temporary, path).await?;
            Ok(size)
        };
        let written = write.await;
        if written.is_err() {
            let _ = tokio::fs::remove_file(&temporary).await;
        }
        written.map_err(TreeError::file(path))
    }

    async fn delete(&self, path: &str) -> Result<(), TreeError> {
        let path_of_file = self.folder.join(path);
        match tokio::fs::remove_file(&path_of_file).await {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(TreeError::file(path)(error)),
            _ => {}
        }
        // Folders that are empty now go too; one that is not empty stays.
        let folders = path_of_file
            .ancestors()
            .skip(1)
            .take_while(|folder| *folder != self.folder);
        for folder in folders {
            if tokio::fs::remove_dir(folder).await.is_err() {
                break;
            }
        }
        Ok(())
    }
}
