use std::{fs::File, io, ops::Range, time::SystemTime};

use bytes::Bytes;
use layout::Key;

use super::{Inner, Patience, Stamp, body, temp::content_version};
use crate::{Body, Fetched, Get, Object, ObjectInfo, StoreError, Version, range};

/// A file opened under its key, or the whole content where only that tells the version.
enum Opened {
    /// An immutable object, of any size.
    File(File, ObjectInfo),
    /// A mutable object: a small document.
    Content(Bytes, ObjectInfo),
}

impl Opened {
    const fn info(&self) -> &ObjectInfo {
        match self {
            Self::File(_, info) | Self::Content(_, info) => info,
        }
    }

    fn body(self, key: &Key, range: Range<u64>, patience: Patience) -> io::Result<Body> {
        match self {
            Self::File(file, _) => body::of_file(file, key.to_string(), range, patience),
            Self::Content(content, _) => {
                let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
                Ok(body::of_bytes(content.slice(start..end)))
            }
        }
    }
}

impl Inner {
    /// Reads an object. An error of the inner kind is final; one of the outer kind may be for lack of patience.
    pub(super) fn get(&self, key: &Key, get: &Get, patience: Patience) -> io::Result<Result<Fetched, StoreError>> {
        let opened = self.open(key, patience)?;
        let info = opened.info();
        if get.unless.as_ref() == Some(&info.version) {
            return Ok(Ok(Fetched::NotModified));
        }
        let range = match range::resolve(get.range.as_ref(), info.size, key) {
            Ok(range) => range,
            Err(error) => return Ok(Err(error)),
        };
        let info = info.clone();
        let body = opened.body(key, range, patience)?;
        Ok(Ok(Fetched::Object(Object { info, body })))
    }

    /// Opens an object. The handle keeps the content whole, whatever happens to the key.
    fn open(&self, key: &Key, patience: Patience) -> io::Result<Opened> {
        // Before the stamp is taken: what is read later cannot be older.
        let now = SystemTime::now();
        let file = patience.open(&self.root, &key.to_string())?;
        let stamp = Stamp::of(&file.metadata()?);
        if key.is_immutable() {
            return Ok(Opened::File(file, stamp.info(stamp.version())));
        }
        let content = patience.read(&file, 0..stamp.size())?;
        let version = content_version(&content);
        if stamp.is_settled(now) {
            self.known.learn(key, stamp, &version);
        }
        Ok(Opened::Content(content, stamp.info(version)))
    }

    /// What is known of an object. It is opened as for a read, so that both agree on what is an object.
    pub(super) fn look(&self, key: &Key, patience: Patience) -> io::Result<ObjectInfo> {
        Ok(self.open(key, patience)?.info().clone())
    }

    /// Whether the object certainly still has this version, told from one look at the file's stamp. The path may lead
    /// through a symbolic link, but then the stamp is not that of any file that was opened.
    pub(super) fn certainly_has(&self, key: &Key, version: &Version) -> bool {
        let Ok(metadata) = std::fs::symlink_metadata(self.path.join(key.to_string())) else {
            return false;
        };
        let stamp = Stamp::of(&metadata);
        if key.is_immutable() {
            metadata.is_file() && stamp.version() == *version
        } else {
            self.known.version(key, &stamp).as_ref() == Some(version)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Condition, FolderStore, Store as _};

    use super::*;

    #[tokio::test]
    async fn a_stamp_is_believed_only_once_it_has_settled() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        let key = Key::Catalogs;
        let version = store.put(&key, "x".into(), Condition::Always).await.unwrap();
        store.head(&key).await.unwrap();
        assert!(
            !store.inner.certainly_has(&key, &version),
            "its successor could look the same"
        );
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert!(!store.inner.certainly_has(&key, &version), "it was not read since");
        store.head(&key).await.unwrap();
        assert!(store.inner.certainly_has(&key, &version));
        store.delete(&key).await.unwrap();
        assert!(!store.inner.certainly_has(&key, &version));
    }
}
