use std::fmt::{Debug, Display};
use std::ops::Range;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use model::Key;

use crate::StoreError;

/// Opaque name of one state of an object, for compare-and-swap and conditional reads. On S3 it is
/// the ETag. Two states of one key with different bytes never share a version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(pub String);

/// Bytes of an object as a stream of chunks.
pub type Body = BoxStream<'static, Result<Bytes, StoreError>>;

/// Facts about an object that cost no reading of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Size of the whole object in bytes, also in the answer to a range.
    pub size: u64,
    /// Name of its state, for [`Get::unless`] and [`Condition::Replace`].
    pub version: Version,
    /// Time of the last write, by the clock of the store.
    pub modified: SystemTime,
}

/// Object whose body is being read.
pub struct Object {
    /// Size, version and time of the whole object.
    pub info: ObjectInfo,
    /// All its bytes, or those of the requested range.
    pub body: Body,
}

/// One answer of the store about a key, with the store's own time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Store's own time of the answer. S3: `Date`. Folder: modification time of a fresh file.
    pub date: SystemTime,
    /// Object under the key; `None` if there is none. Such an answer has a date, too: a first
    /// publication needs one.
    pub object: Option<ObjectInfo>,
}

impl Stat {
    /// Returns the object's age by the store's own clock, zero if the object is from the future.
    pub fn age(&self) -> Option<Duration> {
        let modified = self.object.as_ref()?.modified;
        Some(self.date.duration_since(modified).unwrap_or_default())
    }
}

/// Options of [`ReadStore::get`]. The default reads the whole object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Get {
    /// Reads these bytes only, at least one. The end is cut to the size of the object; a start at
    /// or beyond the size is an error.
    pub range: Option<Range<u64>>,
    /// Answers [`Fetched::NotModified`] if the object still has this version.
    pub unless: Option<Version>,
}

impl Get {
    /// Cuts the requested range to an object of `size` bytes. Without a range, returns that of the
    /// whole object.
    ///
    /// # Errors
    /// [`StoreError::RangeNotSatisfiable`] if the range starts at or beyond the size.
    pub fn resolve(&self, size: u64, key: &dyn Display) -> Result<Range<u64>, StoreError> {
        match &self.range {
            None => Ok(0..size),
            Some(range) if range.start < size => {
                Ok(range.start..range.end.clamp(range.start, size))
            }
            Some(_) => Err(StoreError::range_not_satisfiable(key, size)),
        }
    }
}

/// Result of [`ReadStore::get`]: the object, or that it is unchanged.
pub enum Fetched {
    /// The object, with a body that is still to be read.
    Object(Object),
    /// The object still has the version that [`Get::unless`] names.
    NotModified,
}

/// State of the key that a put requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Writes in every case and replaces what is there.
    Always,
    /// Writes only if there is no such object.
    CreateOnly,
    /// Writes only if the object still has this version (compare-and-swap).
    Replace(Version),
}

/// Object as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Key of the object. Objects whose path is not a key are not listed.
    pub key: Key,
    /// Size of the object in bytes.
    pub size: u64,
    /// Time of the last write, by the clock of the store.
    pub modified: SystemTime,
}

/// Reads of objects under keys, all that a server needs.
#[async_trait]
pub trait ReadStore: Debug + Send + Sync + 'static {
    /// Reads an object.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] without such an object, [`StoreError::RangeNotSatisfiable`],
    /// [`StoreError::Failed`].
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError>;

    /// Returns the facts about an object without reading its bytes; `None` if there is no such
    /// object.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError>;
}

/// Store of objects under keys. One conformance suite runs on every implementation.
#[async_trait]
pub trait Store: ReadStore {
    /// Looks at a key and at the store's own clock in one answer. It is not for hot paths: a folder
    /// writes a file to learn the time.
    ///
    /// # Errors
    /// [`StoreError::Failed`], also for a folder that was opened for reading only. A missing object
    /// is no error.
    async fn stat(&self, key: &Key) -> Result<Stat, StoreError>;

    /// Writes a whole object at once. Others see all of it or nothing of it. The bytes of an
    /// immutable object must have the hash that its key names; a bucket refuses others.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the condition does not hold (also [`Condition::Replace`] of an
    /// object that is gone), [`StoreError::Failed`].
    async fn put(
        &self,
        key: &Key,
        bytes: Bytes,
        condition: Condition,
    ) -> Result<Version, StoreError>;

    /// Starts an object whose size or key is not known yet.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError>;

    /// Returns when all that was put or found before survives a power cut. Call it before you write
    /// a pointer to it.
    ///
    /// # Errors
    /// [`StoreError::Failed`]. Do not rely on anything that was put since the last flush, then.
    async fn flush(&self) -> Result<(), StoreError>;

    /// Removes an object. A missing object is not an error. The store makes one attempt: a delete
    /// that is repeated behind the caller's back could remove what was written in between.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    async fn delete(&self, key: &Key) -> Result<(), StoreError>;

    /// Lists the objects whose path starts with `prefix`, which is empty or can start a key: some
    /// servers refuse `/` or `..`. The order is not defined.
    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>>;
}

/// Object that is being written piece by piece. Dropping it leaves nothing behind.
#[async_trait]
pub trait Staged: Send {
    /// Appends bytes to the end of the object.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError>;

    /// Puts the whole object under `key`.
    ///
    /// # Errors
    /// As [`Store::put`].
    async fn commit(
        self: Box<Self>,
        key: &Key,
        condition: Condition,
    ) -> Result<Version, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolve_of_a_range_that_ends_before_its_start_is_empty() {
        for end in [5, 2] {
            let range = Some(Range { start: 5, end });
            let get = Get {
                range,
                unless: None,
            };
            assert_eq!(get.resolve(10, &"k").unwrap(), 5..5);
        }
    }

    #[test]
    fn age_is_that_by_the_clock_of_the_store_and_zero_for_an_object_from_the_future() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let object = ObjectInfo {
            size: 0,
            version: Version(String::new()),
            modified: at(100),
        };
        for (now, age) in [(160, 60), (40, 0)] {
            let stat = Stat {
                date: at(now),
                object: Some(object.clone()),
            };
            assert_eq!(stat.age(), Some(Duration::from_secs(age)));
        }
    }
}
