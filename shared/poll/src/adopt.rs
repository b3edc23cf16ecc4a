use bytes::Bytes;
use keep::{Examined, examine};
use layout::{Key, Sha256, Stored};
use store::{Condition, Staged, Store, StoreError, Version};

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
    replace(store, key, bytes, found.version).await?;
    Ok((ours, true))
}

/// Replaces what is there at once. A bucket may deny every write to an immutable key that is not create-only (a policy on
/// `s3:if-none-match`), and then the damaged object goes first, which leaves a moment without any. A store that merely
/// failed is no reason for that. Whoever was faster makes this a Conflict, and the turn starts again.
async fn replace(store: &dyn Store, key: &Key, bytes: Bytes, version: Version) -> Result<(), StoreError> {
    match store.put(key, bytes.clone(), Condition::Replace(version)).await {
        Err(error) if error.is_denied() => {
            tracing::debug!(%key, error = &error as &dyn std::error::Error, "it has to be removed first");
            store.delete(key).await?;
            store.put(key, bytes, Condition::CreateOnly).await.map(drop)
        }
        replaced => replaced.map(drop),
    }
}

/// The same for an object that was written piece by piece and hence cannot be written twice. A damaged one makes the turn
/// start again with `wary` set, which looks at what is there before, to replace that and nothing else.
pub(crate) async fn commit(
    store: &dyn Store,
    staged: Box<dyn Staged>,
    key: &Key,
    (ours, content): (Stored, Sha256),
    wary: bool,
) -> Result<(Stored, bool), PollError> {
    let there = if wary { look(store, key).await? } else { None };
    let condition = match there {
        Some(found) if found.content == Some(content) => return Ok((found.stored, false)),
        Some(found) => Condition::Replace(found.version),
        None => Condition::CreateOnly,
    };
    match staged.commit(key, condition.clone()).await {
        Ok(_) => return Ok((ours, true)),
        Err(error) if error.is_denied() && condition != Condition::CreateOnly => store.delete(key).await?,
        Err(error) if error.is_conflict() => {
            let found = examine(store, key).await?;
            if found.content == Some(content) {
                return Ok((found.stored, false));
            }
        }
        Err(error) => return Err(error.into()),
    }
    Err(PollError::Damaged(key.to_string()))
}

/// What lies under a key, if anything does.
async fn look(store: &dyn Store, key: &Key) -> Result<Option<Examined>, StoreError> {
    match examine(store, key).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
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
            Action::Put(Condition::Replace(_)) | Action::Commit(Condition::Replace(_)) => answer(),
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

    async fn commit_again(store: &MemoryStore, wary: bool) -> Result<(Stored, bool), PollError> {
        let mut staged = store.stage().await.unwrap();
        staged.write(SOUND.into()).await.unwrap();
        let content = Sha256::of(SOUND.as_bytes());
        let ours = Stored {
            size: SOUND.len() as u64,
            sha256: content,
        };
        commit(store, staged, &key(), (ours, content), wary).await
    }

    /// Nothing is removed that could come back late and hit what was written after it.
    #[tokio::test]
    async fn what_was_written_in_pieces_is_replaced_by_a_wary_turn() {
        let store = damaged().await;
        assert!(commit_again(&store, false).await.unwrap_err().is_damage());
        assert_eq!(store.objects()[&key()], "damaged");
        assert!(commit_again(&store, true).await.unwrap().1);
        assert_eq!(store.objects()[&key()], SOUND);
        assert!(!commit_again(&store, true).await.unwrap().1, "it is sound");
        assert_eq!(store.count(|action| *action == Action::Delete), 0);
        store.lose(&key());
        assert!(commit_again(&store, true).await.unwrap().1);
    }

    #[tokio::test]
    async fn what_may_not_be_replaced_in_pieces_is_removed_first() {
        let store = damaged().await;
        store.set_hook(replacing(|| Answer::Deny));
        assert!(commit_again(&store, true).await.unwrap_err().is_race());
        assert!(commit_again(&store, true).await.unwrap().1);
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
