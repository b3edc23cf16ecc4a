use std::time::{Duration, SystemTime};

use bytes::Bytes;
use model::{Current, Document, Key};
use store::{Condition, DOCUMENT_MAX, StoreExt, optional};
use tokio::time::timeout;

use super::error::COMMIT_TIMEOUT;
use super::{TRANSACTION_MAX, Transaction};
use crate::PublishError;
use crate::catalogs::{add_name, restore_name};
use crate::env::whole_seconds;

impl Transaction {
    /// Replaces the pointer by `next`, if it is still the one that was read. Everything that was
    /// put is durable before. A new serial is dated by the store's clock, at least one second after
    /// the publication before. The pointer is signed, and the catalog's name is in `catalogs.json`
    /// afterwards. A pointer that says nothing new is not written. Returns the pointer as it is
    /// published, and true if it was written.
    ///
    /// # Errors
    /// [`PublishError::Store`] with a conflict if another writer was faster,
    /// [`PublishError::Expired`], [`PublishError::CommitTimeout`], [`PublishError::NoKey`]. Nothing
    /// was published then, except that after a time-out the write may still happen.
    pub async fn commit(&self, next: Current) -> Result<(Current, bool), PublishError> {
        // A pointer must never be durable before the objects that it names, or a power cut leaves a
        // catalog without its objects.
        self.store.flush().await?;
        let before = self.current()?;
        let is_new = before.is_none_or(|before| before.serial != next.serial);
        let next = if is_new {
            let date = self.prepare().await?;
            let published_at = self.publication_date(date);
            self.sign(Current {
                published_at,
                ..next
            })?
        } else if before == Some(&next) && self.options.signer.is_none() {
            // Unchanged, it keeps the signatures that it has.
            next
        } else {
            self.sign(next)?
        };
        // Ed25519 signatures are deterministic, so the same key and content give the same pointer,
        // and nothing is written.
        if before == Some(&next) {
            // A poll without changes commits nothing, so a name that was lost would stay lost.
            self.restore_name().await?;
            return Ok((next, false));
        }
        if !is_new {
            self.prepare().await?;
        }
        self.replace_pointer(next.to_bytes().into()).await?;
        Ok((next, true))
    }

    /// Replaces the pointer by that of another mirror, byte for byte: it is neither dated nor
    /// signed here. Equal bytes are not written. Returns true if the pointer was written.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub async fn commit_copy(&self, bytes: Bytes, next: &Current) -> Result<bool, PublishError> {
        self.store.flush().await?;
        if self
            .pointer
            .as_ref()
            .is_some_and(|pointer| pointer.bytes == bytes)
        {
            self.restore_name().await?;
            return Ok(false);
        }
        self.prepare().await?;
        tracing::debug!(serial = next.serial, "replacing the pointer by a copy");
        self.replace_pointer(bytes).await?;
        Ok(true)
    }

    /// Puts the catalog's name back into `catalogs.json` if it or the whole document is lost. Does
    /// nothing for a catalog without a pointer.
    ///
    /// # Errors
    /// [`PublishError::Read`].
    pub async fn restore_name(&self) -> Result<(), PublishError> {
        match self.pointer {
            Some(_) => Ok(restore_name(&*self.store, &self.catalog, false).await?),
            None => Ok(()),
        }
    }

    /// Writes the catalog's name before its first pointer, and returns the store's date, if the
    /// commit comes soon enough after the reading of `gc.json`.
    async fn prepare(&self) -> Result<SystemTime, PublishError> {
        // A name without a catalog is harmless, a catalog without a name is not found. The time is
        // checked after it, so that collection knows how old the name can get before the pointer is
        // there.
        if self.pointer.is_none() {
            add_name(&*self.store, &self.catalog, true).await?;
        }
        let date = self.date().await?;
        let age = self.gc.get().map(|gc| gc.age(&self.options.env, date));
        // A publication that put and found no objects has not read `gc.json`, and may take any
        // time.
        if age.is_some_and(|age| age > TRANSACTION_MAX) {
            return Err(PublishError::Expired);
        }
        Ok(date)
    }

    /// Returns the date of the store and not of this machine: all writers of a store then share one
    /// clock.
    pub(crate) async fn date(&self) -> Result<SystemTime, PublishError> {
        let key = Key::Current(self.catalog.clone());
        Ok(self.store.stat(&key).await?.date)
    }

    /// Dates never go back and never repeat, whatever the clock says: readers compare them (RFC
    /// 9110, section 8.8.2).
    fn publication_date(&self, date: SystemTime) -> SystemTime {
        let date = whole_seconds(date);
        // Only a verified pointer counts: a forged one with a date far ahead would push all later
        // dates there.
        let after = self
            .base()
            .map(|base| base.published_at + Duration::from_secs(1));
        after.map_or(date, |after| after.max(date))
    }

    fn sign(&self, mut next: Current) -> Result<Current, PublishError> {
        if let Some(signer) = &self.options.signer {
            return Ok(signer.sign(&self.catalog, next));
        }
        // Readers that verify would stay at the signed pointer, without a word about the reason.
        if self
            .current()?
            .is_some_and(|before| !before.signatures.is_empty())
            && !self.options.may_unsign
        {
            return Err(PublishError::NoKey);
        }
        next.signatures.clear();
        Ok(next)
    }

    async fn replace_pointer(&self, bytes: Bytes) -> Result<(), PublishError> {
        let version = self.pointer.as_ref().map(|pointer| pointer.version.clone());
        let condition = version.map_or(Condition::CreateOnly, Condition::Replace);
        let key = Key::Current(self.catalog.clone());
        let put = self.store.put(&key, bytes.clone(), condition);
        match timeout(COMMIT_TIMEOUT, put).await {
            // A write that the store has accepted may still land. It is counted as a race, and the
            // next attempt reads what was published.
            Err(_) => return Err(PublishError::CommitTimeout),
            // The first answer may have been lost, and the client's own retry refused.
            Ok(Err(error)) if error.is_conflict() && self.is_published(&key, &bytes).await? => {}
            Ok(put) => drop(put?),
        }
        // Again after the commit: a removal at the same time may have taken the name away. The
        // publication stands, so this only warns; the next poll restores the name.
        let named = restore_name(&*self.store, &self.catalog, self.pointer.is_none());
        if let Err(error) = named.await {
            let catalog = &self.catalog;
            tracing::warn!(%catalog, error = %model::text::Chain(&error), "cannot look after catalogs.json");
        }
        Ok(())
    }

    async fn is_published(&self, key: &Key, bytes: &Bytes) -> Result<bool, PublishError> {
        let found = optional(self.store.read_all(key, DOCUMENT_MAX).await)?;
        Ok(found.is_some_and(|(found, _)| found == *bytes))
    }
}
