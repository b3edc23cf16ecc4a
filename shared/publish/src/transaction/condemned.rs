//! The publisher's side of garbage collection: it reads `gc.json` once, spares what is condemned, and gives way to
//! deletes.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use model::{Garbage, GcPhase, GcState, Key, ObjectKey, ObjectRef};
use store::{Condition, Dated, ObjectInfo, Store, StoreError, StoreExt, read_usable};
use tokio::sync::Mutex;

use crate::{Env, PublishError};

/// Number of times that a spare starts again after a lost race. Each loss means that another publication spared
/// something, or that the collector took a step.
const SPARE_ATTEMPTS: u32 = 16;

/// `gc.json` as a publication read it, before it put or found its first object.
#[derive(Debug)]
pub(super) struct GcView {
    /// Time since boot before the read began.
    read_at: Duration,
    /// Time of the read by the store's clock.
    date: SystemTime,
    state: Mutex<CondemnedList>,
}

#[derive(Debug)]
struct CondemnedList {
    state: GcState,
    info: Option<ObjectInfo>,
    /// Age of the state when it was read.
    age: Duration,
    /// Keys on the list. `None` if it is missing or damaged: any key may be on it.
    keys: Option<BTreeSet<ObjectKey>>,
}

impl GcView {
    pub(super) async fn read(store: &dyn Store, env: &Env) -> Result<Self, PublishError> {
        // Before the request: the hour must not start later than the read.
        let read_at = (env.since_boot)();
        let (date, list) = CondemnedList::read(store).await?;
        Ok(Self {
            read_at,
            date,
            state: Mutex::new(list),
        })
    }

    /// Returns the time since `gc.json` was read: the larger of the own clock's and the store's.
    pub(super) fn age(&self, env: &Env, store_date: SystemTime) -> Duration {
        let own = (env.since_boot)().saturating_sub(self.read_at);
        own.max(store_date.duration_since(self.date).unwrap_or_default())
    }

    /// Makes sure that collection does not delete these objects: one compare-and-swap spares all that are condemned.
    pub(super) async fn claim(&self, store: &dyn Store, objects: &[ObjectKey]) -> Result<(), PublishError> {
        // Held during the write: concurrent puts of one publication would only lose races against each other.
        let mut list = self.state.lock().await;
        let wanted: BTreeSet<ObjectKey> = objects.iter().copied().filter(|key| list.contains(key)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        // Objects were found or put under this list. If a later round shows another list, they may have been deleted
        // meanwhile.
        let first = list.state.garbage().copied();
        for _ in 0..SPARE_ATTEMPTS {
            let Some(next) = list.spare(&wanted, first.as_ref())? else {
                return Ok(());
            };
            // Without a version nothing is condemned, so there is one.
            let condition = list
                .info
                .as_ref()
                .map_or(Condition::CreateOnly, |info| Condition::Replace(info.version.clone()));
            match store.write_document(&Key::Gc, &next, condition).await {
                Ok(version) => {
                    match next.phase {
                        GcPhase::Condemned { .. } => tracing::info!(objects = wanted.len(), "spared condemned objects"),
                        GcPhase::None | GcPhase::Deleting { .. } => {
                            tracing::info!("ended a round of garbage collection");
                        }
                    }
                    list.state = next;
                    if let Some(info) = &mut list.info {
                        info.version = version;
                    }
                    return Ok(());
                }
                Err(error) if error.is_conflict() => *list = CondemnedList::read(store).await?.1,
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::conflict(&Key::Gc).into())
    }
}

impl CondemnedList {
    async fn read(store: &dyn Store) -> Result<(SystemTime, Self), PublishError> {
        let Dated { date, document } = store.read_dated::<GcState>(&Key::Gc).await?;
        let (state, info) = document.map_or_else(Default::default, |(state, info)| (state, Some(info)));
        let keys = match state.garbage() {
            None => Some(BTreeSet::new()),
            // A list that cannot be read says nothing, so every key counts as listed: publications go on, at the price of a spare.
            Some(garbage) => read_usable::<Garbage>(store, &garbage.digest)
                .await?
                .map(|list| list.keys),
        };
        let since = state.since.or(info.as_ref().map(|info| info.modified));
        let age = since.and_then(|since| date.duration_since(since).ok());
        let list = Self {
            state,
            info,
            age: age.unwrap_or_default(),
            keys,
        };
        Ok((date, list))
    }

    /// True if the key is on the list and not spared.
    fn contains(&self, key: &ObjectKey) -> bool {
        let is_spared = match &self.state.phase {
            GcPhase::Condemned { spared, .. } => spared.contains(key),
            GcPhase::None | GcPhase::Deleting { .. } => false,
        };
        let is_listed = self.keys.as_ref().is_none_or(|keys| keys.contains(key));
        self.state.garbage().is_some() && is_listed && !is_spared
    }

    /// Returns the state that spares `wanted`, or `None` if nothing has to be written. `first` is the list that the
    /// publication read first.
    fn spare(&self, wanted: &BTreeSet<ObjectKey>, first: Option<&ObjectRef>) -> Result<Option<GcState>, PublishError> {
        let threatened: BTreeSet<ObjectKey> = wanted.iter().copied().filter(|key| self.contains(key)).collect();
        match &self.state.phase {
            // The second marking dropped what it found named, so the rest of the list is no concern here.
            GcPhase::Deleting { .. } => match threatened.first() {
                // Every delete has landed, so any process may end the state. The next collector may come a day later.
                Some(_) if self.age >= GcState::AGE_MIN => Ok(Some(self.state.with_phase(GcPhase::None))),
                Some(key) => Err(PublishError::Deferred(key.key().to_string())),
                None => Ok(None),
            },
            GcPhase::Condemned { garbage, spared } if Some(garbage) == first => {
                if threatened.is_empty() {
                    return Ok(None);
                }
                let phase = GcPhase::Condemned {
                    garbage: *garbage,
                    spared: spared.iter().copied().chain(threatened).collect(),
                };
                let since = self.state.since.or(self.info.as_ref().map(|info| info.modified));
                Ok(Some(GcState {
                    // The write renews the document's own time, so the state keeps its time in `since`.
                    since,
                    ..self.state.with_phase(phase)
                }))
            }
            // A whole round has passed since the first read: hours.
            GcPhase::None | GcPhase::Condemned { .. } => Err(PublishError::Expired),
        }
    }
}
