use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use model::{
    CatalogName, Current, Document, DocumentError, Key, Kind, ManifestEntry, Sha256, Snapshot,
    StoredDocument,
};
use publish::{PublishError, Transaction, TransactionOptions};
use render::RenderLimits;
use store::{DOCUMENT_MAX, Fetched, Get, ReadError, collect, read_object};
use upkeep::check_entry;

use crate::copier::{CopyState, OBJECTS_IN_FLIGHT};
use crate::http::version;
use crate::origin::{check_pointer, check_snapshot};
use crate::planned::{Plan, Planned};
use crate::{Copier, Origin, SyncError, SyncReport, history};

/// Maximum number of stored bytes for each byte of content that is allowed: the Shards, three
/// encodings of `all.json`, the layer of the image and the documents about them, none of which
/// compresses in the worst case.
const STORED_MAX: u64 = 8;

/// Snapshot that is to be copied.
struct FoundSnapshot {
    snapshot: Snapshot,
    /// Stored bytes, if they come from the origin.
    fetched: Option<Bytes>,
}

impl Copier {
    /// Compares both sides. Reads only, except that condemned objects are spared.
    pub(crate) async fn plan(
        &self,
        name: &CatalogName,
        state: &mut CopyState,
    ) -> Result<Planned, SyncError> {
        state.report.kept = Default::default();
        let transaction = self.begin(name, state.recheck).await?;
        let ours = transaction.pointer();
        state.accepted |= ours.is_some();
        let read = ours.map(|ours| Current::from_bytes(&ours.bytes));
        if let Some(Err(DocumentError::Newer { .. } | DocumentError::Older { .. })) = read {
            // Another program looks after this store. A pointer that is merely damaged is replaced
            // instead.
            transaction.current()?;
        }
        let before = ours.and_then(|ours| ours.current.as_ref());
        let bytes = self
            .fetch_pointer(name, ours.map(|ours| &ours.bytes))
            .await?;
        let is_known = ours.is_some_and(|ours| ours.bytes == bytes);
        if !is_known {
            state.report.moved.add(bytes.len() as u64);
        }
        // Nothing else that the origin says is looked at before the signature fits. Also a known
        // state may have been copied before signatures were asked for, or under keys that are
        // revoked now.
        if let Some(trust) = &self.options.trust {
            trust.verify(name, &bytes)?;
        }
        if let Some(before) = before.filter(|_| is_known && !state.recheck) {
            state.report.describe(before);
            return Ok(Planned::Unchanged(Box::new(transaction)));
        }
        let next = Current::from_bytes(&bytes).map_err(|source| SyncError::Document {
            key: Key::Current(name.clone()).to_string(),
            source,
        })?;
        check_pointer(name, &next)?;
        // The history decides what counts as a rollback, so a malformed one could hide that the
        // origin went back.
        if !history::is_valid(&next) {
            return Err(SyncError::History(name.clone()));
        }
        state.accepted = true;
        if let Some(before) = before
            && history::is_behind(before, &next, &self.options)?
        {
            state.report.describe(before);
            return Ok(Planned::Behind {
                theirs: next.serial,
                ours: before.serial,
            });
        }
        let found = self
            .snapshot(&transaction, name, &next, &mut state.report)
            .await?;
        let snapshot = found.snapshot;
        let missing = self
            .missing(&transaction, name, &snapshot, &mut state.report)
            .await?;
        if before.is_none_or(|before| before.content_hash != next.content_hash) {
            state.report.full_bytes = snapshot.all.gzip.size;
        }
        Ok(Planned::Copy(Box::new(Plan {
            transaction,
            bytes,
            next,
            snapshot: Arc::new(snapshot),
            snapshot_bytes: found.fetched,
            missing,
        })))
    }

    /// Begins a transaction. With `recheck` it looks at the bytes of objects that the store has.
    pub(crate) async fn begin(
        &self,
        name: &CatalogName,
        recheck: bool,
    ) -> Result<Transaction, PublishError> {
        let options = TransactionOptions {
            recheck_existing: recheck,
            env: self.options.env.clone(),
            ..TransactionOptions::default()
        };
        Transaction::begin(self.store.clone(), name, options).await
    }

    /// Reads the pointer of a catalog of the origin, unless it has the `known` bytes.
    async fn fetch_pointer(
        &self,
        name: &CatalogName,
        known: Option<&Bytes>,
    ) -> Result<Bytes, SyncError> {
        let key = Key::Current(name.clone());
        let get = Get {
            range: None,
            // A mirror names versions by the hashes of the bytes, and then sends nothing.
            unless: match &self.origin {
                Origin::Mirror(_) => known.map(|bytes| version(Sha256::of(bytes))),
                Origin::Store(_) => None,
            },
        };
        let object = match (self.origin.objects().get(&key, get).await, known) {
            (Ok(Fetched::NotModified), Some(known)) => return Ok(known.clone()),
            (Ok(Fetched::Object(object)), _) => object,
            (Err(error), _) if !error.is_not_found() => return Err(SyncError::origin(error)),
            _ => return Err(SyncError::UnknownCatalog(name.clone())),
        };
        if object.info.size > DOCUMENT_MAX {
            return Err(SyncError::Origin(ReadError::TooLarge {
                key: key.to_string(),
                size: object.info.size,
                max: DOCUMENT_MAX,
            }));
        }
        let bytes = collect(object.body, object.info.size).await;
        bytes.map_err(SyncError::origin)
    }

    /// Returns the Snapshot that a pointer names: from the store if it is there, else from the
    /// origin.
    async fn snapshot(
        &self,
        transaction: &Transaction,
        name: &CatalogName,
        next: &Current,
        report: &mut SyncReport,
    ) -> Result<FoundSnapshot, SyncError> {
        // One that an earlier publication left here is not put again, and may be condemned.
        transaction.claim([next.snapshot]).await?;
        let mut fetched = None;
        let bytes = match read_object(&*self.store, &next.snapshot).await {
            Err(error) if error.is_not_found() || error.is_damage() => {
                let bytes = self.fetch_snapshot(name, next).await?;
                report.moved.add(bytes.len() as u64);
                fetched = Some(bytes.clone());
                bytes
            }
            read => read?,
        };
        let snapshot = Snapshot::from_stored(&bytes).map_err(|source| SyncError::Document {
            key: next.snapshot.key().to_string(),
            source,
        })?;
        check_snapshot(name, next, &snapshot)?;
        Ok(FoundSnapshot { snapshot, fetched })
    }

    async fn fetch_snapshot(&self, name: &CatalogName, next: &Current) -> Result<Bytes, SyncError> {
        match read_object(self.origin.objects(), &next.snapshot).await {
            Err(error) if error.is_damage() => Err(SyncError::Disagrees(name.clone())),
            read => read.map_err(SyncError::Origin),
        }
    }

    async fn missing(
        &self,
        transaction: &Transaction,
        name: &CatalogName,
        snapshot: &Snapshot,
        report: &mut SyncReport,
    ) -> Result<Vec<ManifestEntry>, SyncError> {
        let base = transaction.base_snapshot().await?;
        let same_shards = base.is_some_and(|base| base.shards().eq(snapshot.shards()));
        let published: HashSet<ManifestEntry> =
            base.into_iter().flat_map(Snapshot::objects).collect();
        let entries = snapshot.objects();
        let stored = entries.iter().fold(0_u64, |sum, entry| {
            sum.saturating_add(entry.object.digest.size)
        });
        let limit = RenderLimits::default()
            .content_bytes
            .saturating_mul(STORED_MAX)
            .saturating_add(Snapshot::MAX_BYTES);
        if stored > limit {
            return Err(SyncError::TooLarge {
                name: name.clone(),
                size: stored,
                limit,
            });
        }
        // All at once: each spare of its own would be a write of `gc.json`.
        transaction
            .claim(entries.iter().map(|entry| entry.object))
            .await?;
        let looks = entries.iter().copied().map(async |entry| {
            // An index is right for the Shards that it was published with, and maybe wrong for
            // others.
            let is_published =
                published.contains(&entry) && (same_shards || entry.object.kind != Kind::Index);
            let is_there = self.is_there(transaction, &entry, is_published).await?;
            Ok::<_, SyncError>(is_there.then_some(entry))
        });
        // Unordered, so that one slow answer does not hold up the others.
        let there: HashSet<ManifestEntry> = stream::iter(looks)
            .buffer_unordered(OBJECTS_IN_FLIGHT)
            .try_filter_map(async |there| Ok(there))
            .try_collect()
            .await?;
        for size in there.iter().map(|entry| entry.object.digest.size) {
            report.kept.add(size);
            self.progress.saved.fetch_add(size, Ordering::Relaxed);
        }
        let missing: Vec<_> = entries
            .into_iter()
            .filter(|entry| !there.contains(entry))
            .collect();
        self.progress
            .objects
            .fetch_add(missing.len() as u64, Ordering::Relaxed);
        Ok(missing)
    }

    /// True if the store has an object with the content that the Snapshot records.
    async fn is_there(
        &self,
        transaction: &Transaction,
        entry: &ManifestEntry,
        is_published: bool,
    ) -> Result<bool, SyncError> {
        if !transaction.find(&entry.object).await? {
            return Ok(false);
        }
        if is_published {
            return Ok(true);
        }
        // A killed run or another catalog left it here. Its bytes fit its key, but a Snapshot of
        // another mirror may say anything about what they mean.
        if entry.object.kind == Kind::Index {
            // Only the lines tell if an index is right, so let the rebuild decide.
            return Ok(false);
        }
        let checked = check_entry(&*self.store, entry).await?;
        checked
            .map(|()| true)
            .map_err(SyncError::damaged(&entry.key()))
    }
}
