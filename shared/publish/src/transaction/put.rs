use bytes::Bytes;
use model::{ObjectKey, ObjectRef};
use store::{Condition, ObjectState, Staged, check_object, put_object};

use super::Transaction;
use crate::PublishError;

impl Transaction {
    /// Claims an object and looks if the store has it intact. An object of the published Snapshot counts as intact without
    /// a look, unless [`recheck_existing`](super::TransactionOptions::recheck_existing) is set.
    ///
    /// # Errors
    /// As [`Transaction::claim`], and [`PublishError::Store`].
    pub async fn find(&self, object: &ObjectRef) -> Result<bool, PublishError> {
        // Collection cannot delete what the published Snapshot names, and checking thousands of unchanged shards would
        // cost a request each.
        if !self.options.recheck_existing && self.read_base().await?.named.contains(&ObjectKey::from(*object)) {
            return Ok(true);
        }
        self.claim([*object]).await?;
        Ok(matches!(check_object(&*self.store, object).await?, ObjectState::Intact))
    }

    /// Claims an object and puts its bytes, which must hash to its key. An object that is there already is hashed, and
    /// overwritten if it is damaged: the right bytes may always be written again. Returns true if the bytes were written.
    ///
    /// # Errors
    /// As [`Transaction::claim`], and [`PublishError::Store`].
    pub async fn put_verified(&self, object: ObjectRef, bytes: Bytes) -> Result<bool, PublishError> {
        self.claim([object]).await?;
        let before = put_object(&*self.store, &object, bytes).await?;
        Ok(self.count(&object, before))
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
        let before = match self.options.recheck_existing {
            false => ObjectState::Missing,
            true => check_object(&*self.store, &object).await?,
        };
        let condition = match before {
            ObjectState::Intact => return Ok(false),
            ObjectState::Missing => Condition::CreateOnly,
            ObjectState::Damaged => Condition::Always,
        };
        match staged.commit(&key, condition).await {
            Ok(_) => Ok(self.count(&object, before)),
            Err(error) if error.is_conflict() => match check_object(&*self.store, &object).await? {
                ObjectState::Intact => Ok(false),
                ObjectState::Missing | ObjectState::Damaged => Err(PublishError::Damaged(key.to_string())),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Counts an object by its state before the put. Returns true if it was written.
    fn count(&self, object: &ObjectRef, before: ObjectState) -> bool {
        if before == ObjectState::Intact {
            return false;
        }
        let mut changes = self.changes.lock();
        changes.written.add(object.digest.size);
        if before == ObjectState::Damaged {
            let key = object.key();
            tracing::warn!(%key, "replaced damaged object");
            changes.replaced.push(key);
        }
        true
    }
}
