//! One publication of one catalog: read, put what is new, commit. Poll, rollback, sync and import
//! all use it.

mod commit;
mod condemned;
mod error;

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use model::{CatalogName, Current, Document, Key, ObjectKey, ObjectRef, ObjectStats, Snapshot};
use parking_lot::Mutex;
use store::{
    Condition, DOCUMENT_MAX, ObjectState, ReadError, Staged, Store, StoreExt, Version,
    check_object, optional, put_object, read_usable,
};
use tokio::sync::OnceCell;
use trust::Signer;

pub use self::condemned::DatedGcState;
use self::condemned::GcView;
pub use self::error::{PublishError, RaceRetries, RetryableError};
use crate::Env;

/// Longest time from reading `gc.json` to the commit. What is condemned meanwhile is deleted after
/// two hours at the earliest, and the collector marks again before: half of that leaves an hour for
/// slow commits.
const TRANSACTION_MAX: Duration = Duration::from_secs(3600);

/// Options of a [`Transaction`]. The default signs nothing and relies on what is published.
#[derive(Debug, Clone, Default)]
pub struct TransactionOptions {
    /// Keys that sign the new pointer and verify the published one. Default: none, and nothing is
    /// signed.
    pub signer: Option<Signer>,
    /// Lets an unsigned pointer follow a signed one. Default: no.
    pub may_unsign: bool,
    /// Hashes every stored object before it is relied on, also what the published Snapshot names.
    /// Default: no.
    pub recheck_existing: bool,
    /// Clocks and randomness. Default: the system's.
    pub env: Env,
}

/// `current.json` as a transaction read it.
#[derive(Debug)]
pub struct Pointer {
    /// The bytes as they are stored.
    pub bytes: Bytes,
    /// The document; `None` if it is not a valid one of this format.
    pub current: Option<Current>,
    /// Version of the stored bytes, the condition of the commit.
    pub version: Version,
    /// True if one of the signer's keys signed it, or if there is no signer. An unverified pointer
    /// is neither built on nor compared with.
    pub signature_verified: bool,
}

/// One publication of one catalog. Everything that it puts or finds is safe from garbage collection
/// until it commits.
#[derive(Debug)]
pub struct Transaction {
    store: Arc<dyn Store>,
    catalog: CatalogName,
    options: TransactionOptions,
    pointer: Option<Pointer>,
    base: OnceCell<BaseSnapshot>,
    gc: OnceCell<GcView>,
    changes: Mutex<StoreChanges>,
}

/// The Snapshot that the published pointer names.
#[derive(Debug, Default)]
struct BaseSnapshot {
    snapshot: Option<Snapshot>,
    /// Its keys. The commit fails if the pointer has changed, so collection sees them named until
    /// then.
    named: HashSet<ObjectKey>,
}

#[derive(Debug, Default)]
struct StoreChanges {
    written: ObjectStats,
    replaced: Vec<Key>,
}

impl Transaction {
    /// Reads the pointer of a catalog with its version, and verifies its signature. `gc.json` is
    /// read later, once, before the first object is put or found: a poll that finds nothing new
    /// needs neither.
    ///
    /// # Errors
    /// [`PublishError::Read`]. A pointer that is not a valid document is not an error here.
    pub async fn begin(
        store: Arc<dyn Store>,
        catalog: &CatalogName,
        options: TransactionOptions,
    ) -> Result<Self, PublishError> {
        // The version is read first: whatever another writer publishes after this makes the commit
        // fail.
        let pointer = Pointer::read(&*store, catalog, options.signer.as_ref()).await?;
        Ok(Self {
            store,
            catalog: catalog.clone(),
            options,
            pointer,
            base: OnceCell::new(),
            gc: OnceCell::new(),
            changes: Mutex::default(),
        })
    }

    /// Returns the pointer as it was read; `None` if the catalog has none.
    pub const fn pointer(&self) -> Option<&Pointer> {
        self.pointer.as_ref()
    }

    /// Returns the published pointer, verified or not; `None` if there is none.
    ///
    /// # Errors
    /// [`PublishError::Read`] if it is not a valid document.
    pub fn current(&self) -> Result<Option<&Current>, PublishError> {
        let Some(pointer) = &self.pointer else {
            return Ok(None);
        };
        if pointer.current.is_none() {
            // Parsed again for its error: it is rare.
            let read = Current::from_bytes(&pointer.bytes);
            let key = Key::Current(self.catalog.clone()).to_string();
            read.map_err(|source| ReadError::Document { key, source })?;
        }
        Ok(pointer.current.as_ref())
    }

    /// Returns the published pointer if it is readable and its signature is verified: only that may
    /// be built on.
    pub fn base(&self) -> Option<&Current> {
        let pointer = self
            .pointer
            .as_ref()
            .filter(|pointer| pointer.signature_verified)?;
        pointer.current.as_ref()
    }

    /// Returns the Snapshot that [`Transaction::base`] names. `None` if there is none, or if it is
    /// missing or damaged, which is logged.
    ///
    /// # Errors
    /// [`PublishError::Read`] if the store fails.
    pub async fn base_snapshot(&self) -> Result<Option<&Snapshot>, PublishError> {
        Ok(self.read_base().await?.snapshot.as_ref())
    }

    async fn read_base(&self) -> Result<&BaseSnapshot, PublishError> {
        self.base.get_or_try_init(|| self.load_base()).await
    }

    async fn load_base(&self) -> Result<BaseSnapshot, PublishError> {
        // A lost or damaged Snapshot must not stop the publication that replaces it.
        if let Some(current) = self.base()
            && let Some(snapshot) =
                read_usable::<Snapshot>(&*self.store, &current.snapshot.digest).await?
        {
            let objects = snapshot.objects().into_iter().map(|entry| entry.object);
            let named = objects
                .chain([current.snapshot])
                .map(ObjectKey::from)
                .collect();
            return Ok(BaseSnapshot {
                snapshot: Some(snapshot),
                named,
            });
        }
        Ok(BaseSnapshot::default())
    }

    /// Makes sure that collection deletes none of these objects before the commit. To be called for
    /// many objects at once before they are put, or relied on after they were found;
    /// `put_verified`, `put_staged` and `find` do it for theirs.
    ///
    /// # Errors
    /// [`PublishError::Deferred`] if one is being deleted right now.
    pub async fn claim(
        &self,
        objects: impl IntoIterator<Item = ObjectRef>,
    ) -> Result<(), PublishError> {
        let named = &self.read_base().await?.named;
        let keys = objects.into_iter().map(ObjectKey::from);
        let keys: Vec<ObjectKey> = keys.filter(|key| !named.contains(key)).collect();
        if keys.is_empty() {
            return Ok(());
        }
        self.gc
            .get_or_try_init(|| GcView::read(&*self.store, &self.options.env))
            .await?
            .claim(&*self.store, &keys)
            .await
    }

    /// Claims an object and looks if the store has it intact. An object of the published Snapshot
    /// counts as intact without a look, unless
    /// [`recheck_existing`](TransactionOptions::recheck_existing) is set.
    ///
    /// # Errors
    /// As [`Transaction::claim`], and [`PublishError::Store`].
    pub async fn find(&self, object: &ObjectRef) -> Result<bool, PublishError> {
        // Collection cannot delete what the published Snapshot names, and checking thousands of
        // unchanged shards would cost a request each.
        if !self.options.recheck_existing
            && self
                .read_base()
                .await?
                .named
                .contains(&ObjectKey::from(*object))
        {
            return Ok(true);
        }
        self.claim([*object]).await?;
        Ok(matches!(
            check_object(&*self.store, object).await?,
            ObjectState::Intact
        ))
    }

    /// Claims an object and puts its bytes, which must hash to its key. An object that is there
    /// already is hashed, and overwritten if it is damaged: the right bytes may always be written
    /// again. Returns true if the bytes were written.
    ///
    /// # Errors
    /// As [`Transaction::claim`], and [`PublishError::Store`].
    pub async fn put_verified(
        &self,
        object: ObjectRef,
        bytes: Bytes,
    ) -> Result<bool, PublishError> {
        self.claim([object]).await?;
        let before = put_object(&*self.store, &object, bytes).await?;
        Ok(self.count(&object, before))
    }

    /// Claims an object and puts bytes that were staged. The caller has hashed them: they must hash
    /// to the key of `object`. Returns true if the bytes were written.
    ///
    /// # Errors
    /// As [`Transaction::put_verified`]. [`PublishError::Damaged`] if a damaged object is there,
    /// because staged bytes can be put only once: start again with
    /// [`recheck_existing`](TransactionOptions::recheck_existing).
    pub async fn put_staged(
        &self,
        object: ObjectRef,
        staged: Box<dyn Staged>,
    ) -> Result<bool, PublishError> {
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
                ObjectState::Missing | ObjectState::Damaged => {
                    Err(PublishError::Damaged(key.to_string()))
                }
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

    /// Returns the number and size of the objects that were written.
    pub fn written(&self) -> ObjectStats {
        self.changes.lock().written
    }

    /// Returns the keys of damaged objects that were overwritten.
    pub fn replaced(&self) -> Vec<Key> {
        self.changes.lock().replaced.clone()
    }
}

impl Pointer {
    /// Reads the pointer of a catalog, and verifies its signature if there is a signer.
    pub(crate) async fn read(
        store: &dyn Store,
        catalog: &CatalogName,
        signer: Option<&Signer>,
    ) -> Result<Option<Self>, PublishError> {
        let read = store
            .read_all(&Key::Current(catalog.clone()), DOCUMENT_MAX)
            .await;
        let Some((bytes, info)) = optional(read)? else {
            return Ok(None);
        };
        let verified = signer.map_or(Ok(()), |signer| {
            signer.trust().verify(catalog, &bytes).map(drop)
        });
        if let Err(error) = &verified {
            tracing::warn!(%catalog, error = %model::text::Chain(error), "ignored the published state: its signature is not verified");
        }
        Ok(Some(Self {
            // A damaged pointer is kept with its version, so that a copy from another mirror can
            // replace it.
            current: Current::from_bytes(&bytes).ok(),
            signature_verified: verified.is_ok(),
            version: info.version,
            bytes,
        }))
    }
}
