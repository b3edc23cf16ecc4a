//! A store with changes that may be thrown away.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use model::Key;
use parking_lot::Mutex;

use crate::{
    Condition, Fetched, Get, Listed, ObjectInfo, ReadStore, Staged, Stat, Store, StoreError,
    Version,
};

/// Store whose changes go to another one, for a run that shows what it would do.
#[derive(Debug, Clone)]
pub struct DraftStore(Arc<Draft>);

#[derive(Debug)]
struct Draft {
    base: Arc<dyn Store>,
    changes: Arc<dyn Store>,
    /// Objects of the base that are gone.
    removed: Mutex<BTreeSet<Key>>,
}

impl DraftStore {
    /// Creates a store with the content of `base`, which is only read. `changes` is empty.
    pub fn new(base: Arc<dyn Store>, changes: Arc<dyn Store>) -> Self {
        Self(Arc::new(Draft {
            base,
            changes,
            removed: Mutex::default(),
        }))
    }
}

impl Draft {
    /// Returns an object of the base that is not gone.
    async fn head_of_base(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        if self.removed.lock().contains(key) {
            return Ok(None);
        }
        self.base.head(key).await
    }

    /// Returns the store that has an object, if one has.
    async fn place_of(&self, key: &Key) -> Result<Option<&Arc<dyn Store>>, StoreError> {
        if self.changes.head(key).await?.is_some() {
            return Ok(Some(&self.changes));
        }
        let found = self.head_of_base(key).await?;
        Ok(found.map(|_| &self.base))
    }

    /// Returns the condition under which the changes take an object.
    async fn condition(&self, key: &Key, condition: Condition) -> Result<Condition, StoreError> {
        if self.changes.head(key).await?.is_some() {
            return Ok(condition);
        }
        match (condition, self.head_of_base(key).await?) {
            (Condition::CreateOnly, None) => Ok(Condition::CreateOnly),
            (Condition::Replace(version), Some(found)) if found.version == version => {
                Ok(Condition::CreateOnly)
            }
            (Condition::Always, _) => Ok(Condition::Always),
            _ => Err(StoreError::conflict(key)),
        }
    }
}

#[async_trait]
impl ReadStore for DraftStore {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        match self.0.place_of(key).await? {
            Some(store) => store.get(key, get).await,
            None => Err(StoreError::not_found(key)),
        }
    }

    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        match self.0.place_of(key).await? {
            Some(store) => store.head(key).await,
            None => Ok(None),
        }
    }
}

#[async_trait]
impl Store for DraftStore {
    async fn stat(&self, key: &Key) -> Result<Stat, StoreError> {
        // Of two stores the clock of one counts.
        let stat = self.0.changes.stat(key).await?;
        Ok(Stat {
            object: self.head(key).await?,
            ..stat
        })
    }

    async fn put(
        &self,
        key: &Key,
        bytes: Bytes,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        let condition = self.0.condition(key, condition).await?;
        self.0.changes.put(key, bytes, condition).await
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        Ok(Box::new(StagedDraft {
            staged: self.0.changes.stage().await?,
            draft: Arc::clone(&self.0),
        }))
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.0.changes.flush().await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.0.removed.lock().insert(key.clone());
        self.0.changes.delete(key).await
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        let draft = Arc::clone(&self.0);
        let of_base = self.0.base.list(prefix).try_filter_map(move |listed| {
            let draft = Arc::clone(&draft);
            async move {
                let is_removed = draft.removed.lock().contains(&listed.key);
                let is_changed = draft.changes.head(&listed.key).await?.is_some();
                Ok((!is_removed && !is_changed).then_some(listed))
            }
        });
        self.0.changes.list(prefix).chain(of_base).boxed()
    }
}

/// Object of the changes that has no key yet.
struct StagedDraft {
    staged: Box<dyn Staged>,
    draft: Arc<Draft>,
}

#[async_trait]
impl Staged for StagedDraft {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.staged.write(bytes).await
    }

    async fn commit(
        self: Box<Self>,
        key: &Key,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        let condition = self.draft.condition(key, condition).await?;
        self.staged.commit(key, condition).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FolderStore, StoreExt};

    async fn put(store: &Arc<dyn Store>, key: &Key, text: &'static str, when: Condition) -> bool {
        store.put(key, Bytes::from(text), when).await.is_ok()
    }

    async fn read(store: &Arc<dyn Store>, key: &Key) -> String {
        let (bytes, _) = store.read_all(key, 100).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn draft_changes_nothing_of_its_base() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [base, changes] = folders.each_ref().map(|folder| {
            let store: Arc<dyn Store> = Arc::new(FolderStore::open(folder.path()).unwrap());
            store
        });
        let keys = ["a", "b", "c", "d"].map(|name| Key::Current(name.parse().unwrap()));
        let [kept, replaced, removed, new] = &keys;
        for key in [kept, replaced, removed] {
            assert!(put(&base, key, "old", Condition::CreateOnly).await);
        }
        let draft: Arc<dyn Store> = Arc::new(DraftStore::new(base.clone(), changes));
        assert!(!put(&draft, kept, "x", Condition::CreateOnly).await);
        let version = draft.head(replaced).await.unwrap().unwrap().version;
        let other = Condition::Replace(Version("other".to_owned()));
        assert!(!put(&draft, replaced, "x", other).await);
        let replace = Condition::Replace(version);
        assert!(put(&draft, replaced, "new", replace.clone()).await);
        assert!(!put(&draft, replaced, "x", replace).await);
        draft.delete(removed).await.unwrap();
        let mut staged = draft.stage().await.unwrap();
        staged.write(Bytes::from("new")).await.unwrap();
        staged.commit(new, Condition::CreateOnly).await.unwrap();
        for (key, expected) in [(kept, "old"), (replaced, "new"), (new, "new")] {
            assert_eq!(read(&draft, key).await, expected, "{key}");
        }
        assert!(draft.head(removed).await.unwrap().is_none());
        let listed: Vec<Listed> = draft.list("").try_collect().await.unwrap();
        let mut listed: Vec<String> = listed.iter().map(|listed| listed.key.to_string()).collect();
        listed.sort();
        assert_eq!(listed, [kept, replaced, new].map(Key::to_string));
        for key in [kept, replaced, removed] {
            assert_eq!(read(&base, key).await, "old");
        }
        assert!(base.head(new).await.unwrap().is_none());
    }
}
