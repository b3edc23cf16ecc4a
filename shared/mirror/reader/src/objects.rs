//! Immutable objects as they are stored. Every byte that leaves here was hashed and compared with
//! the object's name.

use std::{ops::Range, time::Duration};

use bytes::Bytes;
use futures_util::TryStreamExt;
use model::{Hasher, Key, Kind, ObjectKey, ObjectRef, Sha256};
use store::{Object, StoreExt, Version};

use crate::cache::BodyKey;
use crate::catalogs::PublishedCatalogs;
use crate::error::{Corruption, ReaderError};
use crate::stream::{self as chunks, Chunks};

/// Number of attempts to read a part of an object that is being replaced. Nothing replaces an
/// object twice in a row but a repair that goes wrong.
const PART_ATTEMPTS: usize = 3;

/// Time after which the bytes of a stored version are hashed again. No store reports what a disk
/// damages later, and one hash an hour costs nothing.
const VERIFIED_FOR: Duration = Duration::from_secs(3600);

/// Extent of a read of a stored object or of lines.
#[derive(Debug, Clone)]
pub enum Extent {
    /// All bytes, which the client gets to the end. The last chunk is sent only if the hash is
    /// right.
    Whole,
    /// All bytes, for a reader that may stop before the end. They are verified before the first one
    /// is returned.
    Prefix,
    /// The bytes of a range. The whole object, or each object that has the lines, is verified
    /// before its first byte is returned.
    Part(Range<u64>),
}

impl PublishedCatalogs {
    /// Returns the size of a stored object; `None` if it is not stored.
    ///
    /// # Errors
    /// [`ReaderError::Store`].
    pub async fn size(&self, kind: Kind, sha256: Sha256) -> Result<Option<u64>, ReaderError> {
        if let Some(bytes) = self.kept_body(&BodyKey::Stored(ObjectKey { kind, sha256 })) {
            return Ok(Some(bytes.len() as u64));
        }
        let found = self.0.store.head(&Key::Object(kind, sha256)).await?;
        Ok(found.map(|info| info.size))
    }

    /// True for a body that is kept in memory once it was read.
    pub fn keeps(&self, bytes: u64) -> bool {
        bytes <= self.0.caches.body_max
    }

    /// Returns an object from memory, or reads, verifies and keeps it.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`].
    pub async fn cached_object(&self, object: &ObjectRef) -> Result<Bytes, ReaderError> {
        let entry = BodyKey::Stored((*object).into());
        self.body(&entry, || self.object(object)).await
    }

    /// Returns a body if it is in memory.
    pub fn kept_body(&self, key: &BodyKey) -> Option<Bytes> {
        self.0.caches.bodies.get(key)
    }

    /// Returns a body from memory, or makes and keeps it.
    ///
    /// # Errors
    /// The error of `make`, and [`ReaderError::Busy`].
    pub async fn body<E: From<ReaderError>, F>(
        &self,
        key: &BodyKey,
        make: impl FnOnce() -> F,
    ) -> Result<Bytes, E>
    where
        F: Future<Output = Result<Bytes, E>>,
    {
        self.0.caches.bodies.get_or_load(key, make).await
    }

    /// Reads an object into memory and verifies it. It is not kept.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`].
    pub async fn object(&self, object: &ObjectRef) -> Result<Bytes, ReaderError> {
        let key = object.key();
        let found = self.open_object(object, None).await?;
        let bytes = self.collect(&key, found).await?;
        let copy = bytes.clone();
        if self
            .run(object.digest.size, move || Sha256::of(&copy))
            .await
            == object.digest.sha256
        {
            Ok(bytes)
        } else {
            Err(ReaderError::corrupt(&key, Corruption::Hash))
        }
    }

    /// Streams the `size` bytes of the lines of a zstd object.
    pub(crate) async fn decoded(
        &self,
        object: &ObjectRef,
        size: u64,
        extent: Extent,
    ) -> Result<Chunks, ReaderError> {
        let stored = if self.keeps(object.digest.size) {
            chunks::once(self.cached_object(object).await?)
        } else {
            self.stream_object(object, extent).await?
        };
        chunks::decode(stored, size, object.key())
    }

    /// Streams the bytes of an object. Each stored version is hashed once an hour, not on every
    /// request.
    ///
    /// # Errors
    /// [`ReaderError::Corrupt`] and [`ReaderError::Store`], also as an item of the stream.
    pub async fn stream_object(
        &self,
        object: &ObjectRef,
        extent: Extent,
    ) -> Result<Chunks, ReaderError> {
        let key = object.key();
        let (range, length) = match &extent {
            Extent::Whole | Extent::Prefix => (None, object.digest.size),
            Extent::Part(range) => (Some(range.clone()), range.end - range.start),
        };
        for _ in 0..PART_ATTEMPTS {
            let Object { info, body } = self.open_object(object, range.clone()).await?;
            let body = chunks::stored(body);
            let entry = (key.clone(), info.version);
            let verified = self.0.caches.verified.get(&entry);
            if verified.is_some_and(|verified| self.now().saturating_sub(verified) < VERIFIED_FOR) {
                return Ok(chunks::exact(body, length, key));
            }
            // Hashed while it is sent: `exact` holds the last chunk back until the hash is known,
            // so that damage ends the connection.
            if matches!(extent, Extent::Whole) {
                return Ok(chunks::exact(
                    self.hashed(body, object, entry.1),
                    length,
                    key,
                ));
            }
            // The bytes are read twice: nothing may be returned before the last of them was hashed.
            drop(body);
            self.verify(object).await?;
        }
        Err(ReaderError::corrupt(&key, Corruption::Replaced))
    }

    /// Reads the object to its end, which remembers its version as verified. That is a later one if
    /// the object was replaced meanwhile.
    async fn verify(&self, object: &ObjectRef) -> Result<(), ReaderError> {
        let Object { info, body } = self.open_object(object, None).await?;
        let body = self.hashed(chunks::stored(body), object, info.version);
        let mut body = chunks::exact(body, object.digest.size, object.key());
        while body.try_next().await?.is_some() {}
        Ok(())
    }

    /// Opens an object that a document names: there, a missing object is damage.
    async fn open_object(
        &self,
        object: &ObjectRef,
        range: Option<Range<u64>>,
    ) -> Result<Object, ReaderError> {
        let key = object.key();
        match self.0.store.open(&key, range).await {
            Ok(found) => check_size(&key, object.digest.size, found.info.size).map(|()| found),
            Err(error) if error.is_not_found() => {
                Err(ReaderError::corrupt(&key, Corruption::Missing))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Passes the bytes on and fails at their end if their hash is wrong; else remembers the
    /// version as verified.
    fn hashed(&self, body: Chunks, object: &ObjectRef, version: Version) -> Chunks {
        let expected = object.digest.sha256;
        let catalogs = self.clone();
        let entry = (object.key(), version);
        let mut hasher = Hasher::new();
        chunks::map_chunks(body, move |chunk| {
            if let Some(chunk) = chunk {
                hasher.update(&chunk);
                return Ok(chunk);
            }
            if hasher.clone().finish() != expected {
                return Err(ReaderError::corrupt(&entry.0, Corruption::Hash));
            }
            catalogs
                .0
                .caches
                .verified
                .insert(entry.clone(), catalogs.now());
            Ok(Bytes::new())
        })
    }
}

pub(crate) fn check_size(key: &Key, expected: u64, found: u64) -> Result<(), ReaderError> {
    if found == expected {
        Ok(())
    } else {
        Err(ReaderError::corrupt(
            key,
            Corruption::Size { expected, found },
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{Encoding, Kind, ObjectDigest};
    use store::{Condition, Store};
    use storekit::MemoryStore;

    use super::*;
    use crate::ReaderSettings;

    // The HTTP contract forges and cuts every object, and asks for all and for parts.
    #[tokio::test]
    async fn stream_object_hashes_a_version_once() {
        let (store, bytes) = (MemoryStore::new(), Bytes::from_static(b"abcd"));
        let object = ObjectDigest::of(&bytes).with_kind(Kind::All(Encoding::Identity));
        store
            .put(&object.key(), bytes, Condition::Always)
            .await
            .unwrap();
        let catalogs = PublishedCatalogs::new(Arc::new(store), ReaderSettings::default());
        assert_eq!(catalogs.0.caches.verified.len(), 0);
        for (extent, expected) in [
            (Extent::Whole, "abcd"),
            (Extent::Part(1..3), "bc"),
            (Extent::Prefix, "abcd"),
        ] {
            let chunks = catalogs.stream_object(&object, extent).await.unwrap();
            assert_eq!(store::collect(chunks, 4).await.unwrap(), expected);
            assert_eq!(catalogs.0.caches.verified.len(), 1);
        }
    }
}
