use std::{fmt::Debug, ops::Range, time::SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use layout::Key;

use crate::StoreError;

/// An opaque mark of one state of a mutable object, for compare-and-swap and conditional reads.
/// Two states of one key with different bytes never share a version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(pub String);

/// The bytes of an object as a stream of chunks.
pub type Body = BoxStream<'static, Result<Bytes, StoreError>>;

/// What is known of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// The whole object's size in bytes.
    pub size: u64,
    /// Its state, for [`Get::unless`] and [`Condition::Replace`].
    pub version: Version,
    /// When it was written.
    pub modified: SystemTime,
}

/// An object that is being read.
pub struct Object {
    /// What is known of it.
    pub info: ObjectInfo,
    /// Its bytes, or those of the range asked for.
    pub body: Body,
}

/// What a read asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Get {
    /// Only these bytes. The end is cut to the object's size; a start at or beyond the size is an error.
    pub range: Option<Range<u64>>,
    /// Nothing, if the object still has this version.
    pub unless: Option<Version>,
}

/// What a read found.
pub enum Fetched {
    /// The object.
    Object(Object),
    /// It still has the version that [`Get::unless`] named.
    NotModified,
}

/// When a put may happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Whatever is there.
    Always,
    /// Only if there is no such object.
    CreateOnly,
    /// Only if the object still has this version.
    Replace(Version),
}

/// One object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key. Objects whose path is no key are not listed.
    pub key: Key,
    /// Its size in bytes.
    pub size: u64,
    /// When it was written.
    pub modified: SystemTime,
}

/// Where the objects live. One conformance suite runs on every store.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// Reads an object.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] without such an object, [`StoreError::RangeNotSatisfiable`], [`StoreError::Failed`].
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError>;

    /// Looks at an object without reading it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] without such an object, [`StoreError::Failed`].
    async fn head(&self, key: &Key) -> Result<ObjectInfo, StoreError>;

    /// Writes a whole object at once: others see all of it or none of it.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the condition does not hold (also [`Condition::Replace`] of an object that is
    /// gone), [`StoreError::Failed`].
    async fn put(&self, key: &Key, bytes: Bytes, condition: Condition) -> Result<Version, StoreError>;

    /// Starts an object whose size, and maybe key, is not known yet.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError>;

    /// Returns when everything put before survives a power cut. To be called before a pointer to it is written.
    ///
    /// # Errors
    /// [`StoreError::Failed`]; nothing put since the last flush may then be relied on.
    async fn flush(&self) -> Result<(), StoreError>;

    /// Removes an object. One that is not there is no error.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    async fn delete(&self, key: &Key) -> Result<(), StoreError>;

    /// Lists the objects whose path starts with `prefix`, in no promised order.
    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>>;
}

/// An object that is being written piece by piece. Dropping it leaves nothing behind.
#[async_trait]
pub trait Staged: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError>;

    /// Puts the object under `key`, whole.
    ///
    /// # Errors
    /// As [`Store::put`].
    async fn commit(self: Box<Self>, key: &Key, condition: Condition) -> Result<Version, StoreError>;
}
