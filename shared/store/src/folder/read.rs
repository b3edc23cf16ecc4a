use std::{fs::File, io, ops::Range, time::SystemTime};

use bytes::Bytes;
use model::Key;

use super::{Inner, ReadMode, Stamp, Temp, body, temp::content_version};
use crate::{Body, Fetched, Get, Object, ObjectInfo, Stat, StoreError, Version};

/// Object that was found: an open file, or the whole content where only that tells the version.
enum Opened {
    /// Immutable object of any size. Its body is read on demand.
    File(File, ObjectInfo),
    /// Mutable object. It is a small document.
    Content(Bytes, ObjectInfo),
}

impl Opened {
    const fn info(&self) -> &ObjectInfo {
        match self {
            Self::File(_, info) | Self::Content(_, info) => info,
        }
    }

    fn body(self, key: &Key, range: Range<u64>, mode: ReadMode) -> io::Result<Body> {
        match self {
            Self::File(file, _) => body::of_file(file, key.to_string(), range, mode),
            Self::Content(content, _) => {
                let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
                Ok(body::of_bytes(content.slice(start..end)))
            }
        }
    }
}

impl Inner {
    /// Reads an object. The inner error is final. The outer one may only mean that an impatient read had to wait.
    pub(super) fn get(&self, key: &Key, get: &Get, mode: ReadMode) -> io::Result<Result<Fetched, StoreError>> {
        let opened = self.open(key, mode)?;
        let info = opened.info();
        if get.unless.as_ref() == Some(&info.version) {
            return Ok(Ok(Fetched::NotModified));
        }
        let range = match get.resolve(info.size, key) {
            Ok(range) => range,
            Err(error) => return Ok(Err(error)),
        };
        let info = info.clone();
        let body = opened.body(key, range, mode)?;
        Ok(Ok(Fetched::Object(Object { info, body })))
    }

    /// Opens an object. The handle keeps the content whole when the key is replaced or deleted.
    fn open(&self, key: &Key, mode: ReadMode) -> io::Result<Opened> {
        // Taken before the stamp, so that the stamp cannot look older than it is.
        let now = SystemTime::now();
        let file = mode.open(&self.root, &key.to_string())?;
        let stamp = Stamp::of(&file.metadata()?);
        if key.is_immutable() {
            // A caller that finds an object may rely on it, and its writer may not have flushed it yet.
            if self.writable {
                self.remember(key)?;
            }
            return Ok(Opened::File(file, stamp.info(stamp.version())));
        }
        let content = mode.read(&file, 0..stamp.size())?;
        let version = content_version(&content);
        if stamp.is_settled(now) {
            self.known.learn(key, stamp, &version);
        }
        Ok(Opened::Content(content, stamp.info(version)))
    }

    /// Returns the facts about an object. Opens it as a read does, so that both agree on what is an object.
    pub(super) fn stat_file(&self, key: &Key, mode: ReadMode) -> io::Result<ObjectInfo> {
        Ok(self.open(key, mode)?.info().clone())
    }

    /// Looks at an object and at the file system's clock, which may be that of another machine.
    pub(super) fn stat(&self, key: &Key) -> io::Result<Stat> {
        let object = match self.stat_file(key, ReadMode::Blocking) {
            Ok(info) => Some(info),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // Taken after the object was read, so that no object is younger than its date.
        let date = Temp::create(self.temp_folder()?)?.stamp()?.modified();
        Ok(Stat { date, object })
    }

    /// True if the object certainly still has this version, by the stamp of its file alone. The path may lead
    /// through a symbolic link, but such a stamp is not that of any file that was opened.
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
    async fn certainly_has_before_the_stamp_settled_is_false() {
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
