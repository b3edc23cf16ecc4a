//! A tree in a folder, for web servers over files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use store::StorePlace;
use tempfile::{Builder, TempPath};

use crate::{TreeError, TreeForm, TreeTarget, index::INDEX};

/// Folder of the tree for files that are being written, and for the lock.
const TEMPORARY: &str = ".tmp";

/// A tree in a folder. Its calls block: a run has nothing else to do, and files of a tree are small
/// but for a few.
#[derive(Debug)]
pub struct FolderTree {
    folder: PathBuf,
    /// Folder of the store, whose files can be linked.
    store: Option<PathBuf>,
    form: TreeForm,
    /// Held as long as the tree is open.
    _lock: fs::File,
}

impl FolderTree {
    /// Opens or creates the tree of a store, and locks it. With `gzip_only` texts are not written
    /// plain.
    ///
    /// # Errors
    /// [`TreeError::Store`], [`TreeError::Foreign`], [`TreeError::Busy`], and failures of the file
    /// system.
    pub fn open(folder: &Path, store: &StorePlace, gzip_only: bool) -> Result<Self, TreeError> {
        let at = folder.display().to_string();
        let failed = || TreeError::at(&at);
        let store = match store {
            StorePlace::Folder(store) => Some(store.canonicalize().map_err(failed())?),
            StorePlace::S3(_) => None,
        };
        // Nothing is created in a place that is refused.
        let existing = folder
            .ancestors()
            .find(|folder| folder.exists())
            .unwrap_or(Path::new("."))
            .canonicalize()
            .map_err(failed())?;
        if let Some(store) = &store {
            let is_in_store = existing.starts_with(store);
            let holds_store = folder.exists() && store.starts_with(&existing);
            if is_in_store || holds_store {
                return Err(TreeError::Store(at));
            }
        }
        fs::create_dir_all(folder).map_err(failed())?;
        let folder = folder.canonicalize().map_err(failed())?;
        let mut entries = fs::read_dir(&folder).map_err(failed())?;
        let holds_others =
            entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != TEMPORARY));
        if holds_others && !folder.join(INDEX).exists() {
            return Err(TreeError::Foreign(at));
        }
        let temporary = folder.join(TEMPORARY);
        let lock = temporary.join("lock");
        fs::create_dir_all(&temporary).map_err(TreeError::at(TEMPORARY))?;
        let file = work::open_or_create(&lock).map_err(TreeError::at(TEMPORARY))?;
        file.try_lock()
            .map_err(|_| TreeError::Busy(folder.clone()))?;
        // What a killed run left.
        for entry in fs::read_dir(&temporary)
            .map_err(TreeError::at(TEMPORARY))?
            .flatten()
        {
            if entry.path() != lock {
                fs::remove_file(entry.path()).map_err(TreeError::at(TEMPORARY))?;
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
            _lock: file,
        })
    }
}

#[async_trait]
impl TreeTarget for FolderTree {
    fn form(&self) -> TreeForm {
        self.form
    }

    fn temporary(&self) -> PathBuf {
        self.folder.join(TEMPORARY)
    }

    async fn index(&self) -> Result<Option<Bytes>, TreeError> {
        match work::read_file(&self.folder.join(INDEX), u64::MAX) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TreeError::at(INDEX)(error)),
        }
    }

    async fn sizes(&self, paths: &BTreeSet<String>) -> Result<BTreeMap<String, u64>, TreeError> {
        let mut sizes = BTreeMap::new();
        for path in paths {
            // A file that cannot be looked at is written again, which tells what is wrong.
            if let Ok(found) = fs::metadata(self.folder.join(path))
                && found.is_file()
            {
                sizes.insert(path.clone(), found.len());
            }
        }
        Ok(sizes)
    }

    fn link(&self, path: &str, source: &str) -> Option<TempPath> {
        let root = if path == source {
            self.store.as_ref()?
        } else {
            &self.folder
        };
        // File systems without links and other disks refuse in many ways. The copy that follows
        // tells what is wrong.
        let link = Builder::new().make_in(self.temporary(), |link| {
            fs::hard_link(root.join(source), link)
        });
        Some(link.ok()?.into_temp_path())
    }

    async fn put(&self, path: &str, _: &HeaderMap, file: TempPath) -> io::Result<()> {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        // Web servers make the entity tag of a file from its size and the second of its change. A
        // link has the time of the store's file, which collection looks at, and other bytes have
        // another name there.
        let new = fs::metadata(&file)?;
        if let Ok(old) = fs::metadata(&path)
            && new.nlink() == 1
            && new.len() == old.len()
            && new.mtime() <= old.mtime()
        {
            let next = old.modified()? + Duration::from_secs(1);
            fs::File::options()
                .write(true)
                .open(&file)?
                .set_modified(next)?;
        }
        // A link to the file that has the name already stays where it is (rename(2)), and is then
        // deleted as all temporary files are.
        fs::rename(&file, path)
    }

    async fn delete(&self, path: &str) -> io::Result<()> {
        let file = self.folder.join(path);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Folders that are empty now go too; one that is not empty stays.
        let mut folders = file
            .ancestors()
            .skip(1)
            .take_while(|folder| *folder != self.folder);
        while folders
            .next()
            .is_some_and(|folder| fs::remove_dir(folder).is_ok())
        {}
        Ok(())
    }
}
