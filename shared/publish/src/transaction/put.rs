use bytes::Bytes;
use model::{Key, ObjectRef};
use store::{Condition, ObjectState, Staged, StoreError, check_object};

use super::{Transaction, object_key};
use crate::PublishError;

/// Number of times that a put starts again because the object vanished between a conflict and the look at it.
const PUT_ATTEMPTS: u32 = 3;

impl Transaction {
    /// Claims an object and looks if the store has it intact. An object of the published Snapshot counts as intact without
    /// a look, unless [`recheck_existing`](super::TransactionOptions::recheck_existing) is set.
    ///
    /// # Errors
    /// As [`Transaction::claim`], and [`PublishError::Store`].
    pub async fn find(&self, object: &ObjectRef) -> Result<bool, PublishError> {
        // Collection cannot delete what the published Snapshot names, and checking thousands of unchanged shards would
        // cost a request each.
        if !self.options.recheck_existing && self.read_base().await?.named.contains(&object_key(object)) {
            return Ok(true);
        }
        self.claim([*object]).await?;
        Ok(matches!(self.check(object).await?, ObjectState::Intact { .. }))
    }

    /// Claims an object and puts its bytes, which must hash to its key. An object that is there already is hashed, and
    /// overwritten if it is damaged: the right bytes may always be written again. Returns true if the bytes were written.
    ///
    /// # Errors
    /// As [`Transaction::claim`], and [`PublishError::Store`].
    pub async fn put_verified(&self, object: ObjectRef, bytes: Bytes) -> Result<bool, PublishError> {
        self.claim([object]).await?;
        let key = object.key();
        for _ in 0..PUT_ATTEMPTS {
            // Create-only first: for a new object, the usual case, it saves the request that would look for it.
            match self.store.put(&key, bytes.clone(), Condition::CreateOnly).await {
                Ok(_) => return Ok(self.count(&object, None)),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
            match self.check(&object).await? {
                ObjectState::Intact { .. } => return Ok(false),
                // Deleted between the conflict and the check: put it again.
                ObjectState::Missing => {}
                ObjectState::Damaged { .. } => {
                    self.store.put(&key, bytes, Condition::Always).await?;
                    return Ok(self.count(&object, Some(key)));
                }
            }
        }
        Err(StoreError::conflict(&key).into())
    }

    /// Claims an object and puts bytes that were staged. The caller has hashed them: they must hash to the key of `object`.
    /// Returns true if the bytes were written.
    ///
    /// # Errors
    /// As [`Transaction::put_verified`]. [`PublishError::Damaged`] if a damaged object is there, because staged bytes can be
    /// put only once: start again with [`recheck_existing`](super::TransactionOptions::recheck_existing).
    pub async fn put_staged(&self, object: ObjectRef, staged: Box<dyn Staged>) -> Result<bool, PublishError> {
        self.claim([object]).await?;
        let key = object.key();
        let (condition, replaced) = match self.options.recheck_existing {
            false => (Condition::CreateOnly, None),
            true => match self.check(&object).await? {
                ObjectState::Intact { .. } => return Ok(false),
                ObjectState::Missing => (Condition::CreateOnly, None),
                ObjectState::Damaged { .. } => (Condition::Always, Some(key.clone())),
            },
        };
        match staged.commit(&key, condition).await {
            Ok(_) => Ok(self.count(&object, replaced)),
            Err(error) if error.is_conflict() => match self.check(&object).await? {
                ObjectState::Intact { .. } => Ok(false),
                ObjectState::Missing | ObjectState::Damaged { .. } => Err(PublishError::Damaged(key.to_string())),
            },
            Err(error) => Err(error.into()),
        }
    }

    async fn check(&self, object: &ObjectRef) -> Result<ObjectState, StoreError> {
        check_object(&*self.store, object.kind, object.digest.sha256).await
    }

    fn count(&self, object: &ObjectRef, replaced: Option<Key>) -> bool {
        if let Some(key) = &replaced {
            tracing::warn!(%key, "replaced damaged object");
        }
        let mut changes = self.changes();
        changes.written.add(object.digest.size);
        changes.replaced.extend(replaced);
        true
    }
}
