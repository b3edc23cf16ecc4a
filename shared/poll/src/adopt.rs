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
/// `s3:if-none-match`), and then the damaged object goes first, which leaves a moment without any. A store that merely
/// failed is no reason for that. Whoever was faster makes this a Conflict, and the turn starts again.
async fn replace(store: &dyn Store, key: &Key, bytes: Bytes) -> Result<(), StoreError> {
    let version = store.head(key).await?.version;
    match store.put(key, bytes.clone(), Condition::Replace(version)).await {
        Err(error) if error.is_denied() => {
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

#[cfg(test)]
mod tests {
    use store::memory::{Action, Answer, MemoryStore};

    use super::*;

    const SOUND: &str = "sound";

    fn key() -> Key {
        Key::Blob(Sha256::of(SOUND.as_bytes()))
    }

    async fn damaged() -> MemoryStore {
        let store = MemoryStore::default();
        store.put(&key(), SOUND.into(), Condition::CreateOnly).await.unwrap();
        store.corrupt(&key(), "damaged");
        store
    }

    async fn put_again(store: &MemoryStore) -> Result<(Stored, bool), StoreError> {
        put(store, &key(), SOUND.into(), Sha256::of(SOUND.as_bytes())).await
    }

    fn replacing(answer: fn() -> Answer) -> impl Fn(&store::memory::Call, store::memory::Moment) -> Answer {
        move |call, _| match call.action {
            Action::Put(Condition::Replace(_)) => answer(),
            _ => Answer::GoOn,
        }
    }

    #[tokio::test]
    async fn what_is_damaged_is_replaced_at_once() {
        let store = damaged().await;
        assert!(put_again(&store).await.unwrap().1);
        assert_eq!(store.count(|action| *action == Action::Delete), 0);
        assert_eq!(store.objects()[&key()], SOUND);
    }

    #[tokio::test]
    async fn what_may_not_be_replaced_is_removed_first() {
        let store = damaged().await;
        store.set_hook(replacing(|| Answer::Deny));
        assert!(put_again(&store).await.unwrap().1);
        assert_eq!(store.count(|action| *action == Action::Delete), 1);
        assert_eq!(store.objects()[&key()], SOUND);
    }

    /// It may be damaged, but some of it may still be served, and whether anything could follow is not known.
    #[tokio::test]
    async fn a_store_that_fails_loses_nothing() {
        let store = damaged().await;
        store.set_hook(replacing(|| Answer::Fail));
        assert!(put_again(&store).await.is_err());
        assert_eq!(store.count(|action| *action == Action::Delete), 0);
        assert_eq!(store.objects()[&key()], "damaged");
    }
}
