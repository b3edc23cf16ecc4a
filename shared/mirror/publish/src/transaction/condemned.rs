//! The publisher's side of garbage collection: it reads `gc.json` once, spares what is condemned,
//! and gives way to deletes.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use model::{Garbage, GcPhase, GcState, Key, ObjectKey, ObjectRef};
use store::{ReadError, Stat, Store, StoreError, StoreExt, Version, read_usable};
use tokio::sync::Mutex;

use crate::{Env, PublishError};

/// Number of times that a spare starts again after a lost race. Each loss means that another
/// publication spared something, or that the collector took a step.
const SPARE_ATTEMPTS: u32 = 16;

/// Number of times that the document is read anew because it changed between its reading and the
/// look at the clock.
const READ_ATTEMPTS: u32 = 10;

/// `gc.json` as it was read, with times by the clock of the store.
#[derive(Debug)]
pub struct DatedGcState {
    /// The document, or the default if there is none.
    pub state: GcState,
    /// Version of the document; `None` if there is none.
    pub version: Option<Version>,
    /// Time at which the state began; `None` if there is no document.
    pub since: Option<SystemTime>,
    /// Time of the read.
    pub date: SystemTime,
}

impl DatedGcState {
    /// Reads the document with its age: content, version and age belong to one state of the object.
    ///
    /// # Errors
    /// As [`StoreExt::read_document`] and [`Store::stat`]; [`StoreError::Conflict`] if the document
    /// keeps changing.
    pub async fn read(store: &dyn Store) -> Result<Self, ReadError> {
        for _ in 0..READ_ATTEMPTS {
            let (state, version) = store.read_document(&Key::Gc).await?.unzip();
            let stat = store.stat(&Key::Gc).await?;
            // No version comes back, so the document was this one all the time between the two
            // answers.
            if version.as_ref() == stat.object.as_ref().map(|object| &object.version) {
                return Ok(Self::new(state, stat));
            }
        }
        Err(StoreError::conflict(&Key::Gc).into())
    }

    /// Adds what the store says about its object to a document.
    pub fn new(state: Option<GcState>, stat: Stat) -> Self {
        let state = state.unwrap_or_default();
        let (modified, version) = stat
            .object
            .map(|object| (object.modified, object.version))
            .unzip();
        Self {
            // A spare rewrites the document and so renews its time in the store. `since` keeps the
            // time at which the state began.
            since: state.since.or(modified),
            version,
            state,
            date: stat.date,
        }
    }

    /// Returns the age of the state at the read; the longest if there is no document, because
    /// nothing came before.
    pub fn age(&self) -> Duration {
        self.since.map_or(Duration::MAX, |since| {
            self.date.duration_since(since).unwrap_or_default()
        })
    }

    /// Replaces the document if it is still the one that was read. Returns the new state, dated by
    /// the read before it: only the next read tells its age. `None` if another writer was faster.
    ///
    /// # Errors
    /// As [`Store::put`], a conflict excepted.
    pub async fn replace(
        &self,
        store: &dyn Store,
        next: GcState,
    ) -> Result<Option<Self>, StoreError> {
        let swapped = store
            .swap_document(&Key::Gc, &next, self.version.clone())
            .await?;
        Ok(swapped.map(|version| Self {
            version: Some(version),
            since: next.since.or(Some(self.date)),
            state: next,
            date: self.date,
        }))
    }
}

/// `gc.json` as a publication read it, before it put or found its first object.
#[derive(Debug)]
pub(super) struct GcView {
    /// Time since boot before the read began.
    read_at: Duration,
    /// Time of the read by the store's clock.
    date: SystemTime,
    list: Mutex<CondemnedList>,
}

#[derive(Debug)]
struct CondemnedList {
    gc: DatedGcState,
    /// Keys on the list. `None` if it is missing or damaged: any key may be on it.
    keys: Option<BTreeSet<ObjectKey>>,
}

impl GcView {
    pub(super) async fn read(store: &dyn Store, env: &Env) -> Result<Self, PublishError> {
        // Before the request: the hour must not start later than the read.
        let read_at = (env.since_boot)();
        let list = CondemnedList::read(store).await?;
        Ok(Self {
            read_at,
            date: list.gc.date,
            list: Mutex::new(list),
        })
    }

    /// Returns the time since `gc.json` was read: the larger of the own clock's and the store's.
    pub(super) fn age(&self, env: &Env, store_date: SystemTime) -> Duration {
        let own = (env.since_boot)().saturating_sub(self.read_at);
        own.max(store_date.duration_since(self.date).unwrap_or_default())
    }

    /// Makes sure that collection does not delete these objects: one compare-and-swap spares all
    /// that are condemned.
    pub(super) async fn claim(
        &self,
        store: &dyn Store,
        objects: &[ObjectKey],
    ) -> Result<(), PublishError> {
        // Held during the write: concurrent puts of one publication would only lose races against
        // each other.
        let mut list = self.list.lock().await;
        let wanted: BTreeSet<ObjectKey> = objects
            .iter()
            .copied()
            .filter(|key| list.contains(key))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        // Objects were found or put under this list. If a later round shows another list, they may
        // have been deleted meanwhile.
        let first = list.gc.state.garbage().copied();
        for _ in 0..SPARE_ATTEMPTS {
            let Some(next) = list.spare(&wanted, first.as_ref())? else {
                return Ok(());
            };
            let Some(replaced) = list.gc.replace(store, next).await? else {
                *list = CondemnedList::read(store).await?;
                continue;
            };
            match replaced.state.phase {
                GcPhase::Condemned { .. } => {
                    tracing::info!(objects = wanted.len(), "spared condemned objects");
                }
                GcPhase::None | GcPhase::Deleting { .. } => {
                    tracing::info!("ended a round of garbage collection");
                }
            }
            list.gc = replaced;
            return Ok(());
        }
        Err(StoreError::conflict(&Key::Gc).into())
    }
}

impl CondemnedList {
    async fn read(store: &dyn Store) -> Result<Self, PublishError> {
        let gc = DatedGcState::read(store).await?;
        let keys = match gc.state.garbage() {
            None => Some(BTreeSet::new()),
            // A list that cannot be read says nothing, so every key counts as listed: publications
            // go on, at the price of a spare.
            Some(garbage) => read_usable::<Garbage>(store, &garbage.digest)
                .await?
                .map(|list| list.keys),
        };
        Ok(Self { gc, keys })
    }

    /// True if the key is on the list and not spared.
    fn contains(&self, key: &ObjectKey) -> bool {
        let is_spared = match &self.gc.state.phase {
            GcPhase::Condemned { spared, .. } => spared.contains(key),
            GcPhase::None | GcPhase::Deleting { .. } => false,
        };
        let is_listed = self.keys.as_ref().is_none_or(|keys| keys.contains(key));
        self.gc.state.garbage().is_some() && is_listed && !is_spared
    }

    /// Returns the state that spares `wanted`, or `None` if nothing has to be written. `first` is
    /// the list that the publication read first.
    fn spare(
        &self,
        wanted: &BTreeSet<ObjectKey>,
        first: Option<&ObjectRef>,
    ) -> Result<Option<GcState>, PublishError> {
        let threatened: BTreeSet<ObjectKey> = wanted
            .iter()
            .copied()
            .filter(|key| self.contains(key))
            .collect();
        match &self.gc.state.phase {
            // The second marking dropped what it found named, so the rest of the list is no concern
            // here.
            GcPhase::Deleting { .. } => match threatened.first() {
                // Every delete has landed, so any process may end the state. The next collector may
                // come a day later.
                Some(_) if self.gc.age() >= GcState::AGE_MIN => {
                    Ok(Some(self.gc.state.with_phase(GcPhase::None)))
                }
                Some(key) => Err(PublishError::Deferred(key.key().to_string())),
                None => Ok(None),
            },
            GcPhase::Condemned { garbage, spared } if Some(garbage) == first => {
                if threatened.is_empty() {
                    return Ok(None);
                }
                let (garbage, spared) =
                    (*garbage, spared.iter().copied().chain(threatened).collect());
                let phase = GcPhase::Condemned { garbage, spared };
                let mut next = self.gc.state.with_phase(phase);
                // The write renews the document's own time, so the state keeps its time in `since`.
                next.since = self.gc.since;
                Ok(Some(next))
            }
            // A whole round has passed since the first read: hours.
            GcPhase::None | GcPhase::Condemned { .. } => Err(PublishError::Expired),
        }
    }
}
