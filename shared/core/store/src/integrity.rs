//! The one answer to "is this the object that is meant": the sha256 of the stored bytes, compared
//! with the key.

use bytes::Bytes;
use futures_util::{TryStreamExt as _, stream::BoxStream};
use model::text::Chain;
use model::{Hasher, ObjectDigest, ObjectRef, Sha256, StoredDocument};

use crate::{Condition, ReadError, ReadStore, Store, StoreError, StoreExt, optional};

/// Number of times that a put starts again because the object vanished between a conflict and the
/// look at it.
const PUT_ATTEMPTS: u32 = 3;

/// State of an immutable object in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectState {
    /// The stored bytes hash to the key.
    Intact,
    /// The stored bytes hash to something else.
    Damaged,
    /// The store has no such object.
    Missing,
}

/// Reads an object to its end, and compares the hash of its bytes with its key. Memory is one
/// chunk.
///
/// # Errors
/// As [`ReadStore::get`]. An object that is missing or damaged is not an
/// error.
pub async fn check_object(
    store: &dyn Store,
    object: &ObjectRef,
) -> Result<ObjectState, StoreError> {
    let body = match store.open(&object.key(), None).await {
        Err(error) if error.is_not_found() => return Ok(ObjectState::Missing),
        found => found?.body,
    };
    if hash(body).await? != object.digest.sha256 {
        return Ok(ObjectState::Damaged);
    }
    Ok(ObjectState::Intact)
}

/// Puts an immutable object, whose bytes must hash to its key. One that is there already is hashed,
/// and overwritten if it is damaged: the right bytes may always be written again. Returns the state
/// in which it was before, `Intact` if nothing was written.
///
/// # Errors
/// As [`Store::put`] and [`check_object`].
pub async fn put_object(
    store: &dyn Store,
    object: &ObjectRef,
    bytes: Bytes,
) -> Result<ObjectState, StoreError> {
    let key = object.key();
    for _ in 0..PUT_ATTEMPTS {
        // Create-only first: for a new object, the usual case, it saves the request that would look
        // for it.
        match store.put(&key, bytes.clone(), Condition::CreateOnly).await {
            Ok(_) => return Ok(ObjectState::Missing),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error),
        }
        match check_object(store, object).await? {
            ObjectState::Intact => return Ok(ObjectState::Intact),
            // Deleted between the conflict and the check: put it again.
            ObjectState::Missing => {}
            ObjectState::Damaged => {
                store.put(&key, bytes, Condition::Always).await?;
                return Ok(ObjectState::Damaged);
            }
        }
    }
    Err(StoreError::conflict(&key))
}

/// Reads a body to its end. Returns the hash of its bytes.
pub(crate) async fn hash<E>(mut body: BoxStream<'_, Result<Bytes, E>>) -> Result<Sha256, E> {
    let mut hasher = Hasher::new();
    while let Some(chunk) = body.try_next().await? {
        hasher.update(&chunk);
    }
    Ok(hasher.finish())
}

/// Reads an object of at most its recorded size, and compares the hash of its bytes with its key.
///
/// # Errors
/// As [`StoreExt::read_all`], and [`ReadError::Damaged`].
pub async fn read_object(store: &dyn ReadStore, object: &ObjectRef) -> Result<Bytes, ReadError> {
    let key = object.key();
    let (bytes, _) = store.read_all(&key, object.digest.size).await?;
    let found = Sha256::of(&bytes);
    if found != object.digest.sha256 {
        return Err(ReadError::Damaged {
            key: key.to_string(),
            found,
        });
    }
    Ok(bytes)
}

/// Reads a document as [`read_stored`] does. Returns `None` if it is missing.
///
/// # Errors
/// [`ReadError`] if the store fails, or if the document is damaged.
pub async fn find_stored<T: StoredDocument>(
    store: &dyn Store,
    stored: &ObjectDigest,
) -> Result<Option<T>, ReadError> {
    optional(read_stored(store, stored).await)
}

/// Reads a document as [`read_stored`] does. Returns `None` if it is missing or damaged, which is
/// logged.
///
/// # Errors
/// [`ReadError::Store`] if the store fails.
pub async fn read_usable<T: StoredDocument>(
    store: &dyn Store,
    stored: &ObjectDigest,
) -> Result<Option<T>, ReadError> {
    match read_stored(store, stored).await {
        Err(error) if error.is_not_found() || error.is_damage() => {
            let key = stored.with_kind(T::KIND).key();
            tracing::warn!(%key, error = %Chain(&error), "a stored document is unusable");
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// Reads a document that is stored compressed, and compares the hash of its bytes with its key.
///
/// # Errors
/// As [`read_object`], and [`ReadError::Document`] if the bytes are not that document.
pub async fn read_stored<T: StoredDocument>(
    store: &dyn Store,
    stored: &ObjectDigest,
) -> Result<T, ReadError> {
    let object = stored.with_kind(T::KIND);
    let bytes = read_object(store, &object).await?;
    T::from_stored(&bytes).map_err(|source| ReadError::Document {
        key: object.key().to_string(),
        source,
    })
}
