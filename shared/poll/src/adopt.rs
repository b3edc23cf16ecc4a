use bytes::Bytes;
use keep::examine;
use layout::{Key, Sha256, Stored};
use store::{Condition, Staged, Store, StoreError};

use crate::PollError;

/// Puts an object create-only. One that is there already is kept if its content hashes to `content`, because readers
/// may hold it, and replaced if not. Returns what lies in the store, and whether it was written now.
pub(crate) async fn put(
    store: &dyn Store,
    key: &Key,
    bytes: Bytes,
    content: Sha256,
) -> Result<(Stored, bool), StoreError> {
    let ours = Stored {
        size: bytes.len() as u64,
        sha256: Sha256::of(&bytes),
    };
    match store.put(key, bytes.clone(), Condition::CreateOnly).await {
        Ok(_) => return Ok((ours, true)),
        Err(error) if error.is_conflict() => {}
        Err(error) => return Err(error),
    }
    let found = examine(store, key).await?;
    if found.content == Some(content) {
        return Ok((found.stored, false));
    }
    tracing::warn!(%key, "a damaged object is replaced");
    replace(store, key, bytes).await?;
    Ok((ours, true))
}

/// Replaces what is there at once. A bucket may deny every write to an immutable key that is not create-only (a policy on
/// `s3:if-none-match`), and then the damaged object goes first, which leaves a moment without any. Whoever was faster
/// makes this a Conflict, and the turn starts again.
async fn replace(store: &dyn Store, key: &Key, bytes: Bytes) -> Result<(), StoreError> {
    let version = store.head(key).await?.version;
    match store.put(key, bytes.clone(), Condition::Replace(version)).await {
        Err(error) if !error.is_conflict() => {
            tracing::debug!(%key, error = &error as &dyn std::error::Error, "it has to be removed first");
            store.delete(key).await?;
            store.put(key, bytes, Condition::CreateOnly).await.map(drop)
        }
        replaced => replaced.map(drop),
    }
}

/// The same for an object that was written piece by piece and hence cannot be written twice: a damaged one is removed
/// and the turn has to start again.
pub(crate) async fn commit(
    store: &dyn Store,
    staged: Box<dyn Staged>,
    key: &Key,
    ours: Stored,
    content: Sha256,
) -> Result<(Stored, bool), PollError> {
    match staged.commit(key, Condition::CreateOnly).await {
        Ok(_) => return Ok((ours, true)),
        Err(error) if error.is_conflict() => {}
        Err(error) => return Err(error.into()),
    }
    let found = examine(store, key).await?;
    if found.content == Some(content) {
        return Ok((found.stored, false));
    }
    store.delete(key).await?;
    Err(PollError::Damaged(key.to_string()))
}
