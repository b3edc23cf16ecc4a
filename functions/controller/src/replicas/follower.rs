//! A follower: it asks the leader for its list once a second, copies what it lacks, and decides by the list how to serve.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::{CatalogName, Key, Sha256};
use prometheus_client::metrics::gauge::Gauge;
use store::{DOCUMENT_MAX, ReadError, Store, StoreExt};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    ReplicaList,
    follow_state::FollowState,
    link::{FollowerReport, LeaderLink, LinkSettings},
    rules::{LAG, Standing},
};
use crate::election::LeaseSight;

/// Time between two requests for the list.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// Number of requests without an answer after which the Lease is read at every fifth only.
const EAGER: u32 = 5;
/// Maximum number of catalogs that are copied at a time.
const COPIES_MAX: usize = 4;
/// Maximum time for the copy of one catalog.
const COPY_TIME: Duration = Duration::from_secs(600);
/// Time before a copy that failed is tried again.
const COPY_RETRY: Duration = Duration::from_secs(5);

/// Settings of a [`Follower`].
pub(crate) struct FollowSettings {
    /// Name of this replica.
    pub(crate) me: String,
    pub(crate) store: Arc<dyn Store>,
    /// True if catalogs that the leader does not list are removed from the store: it has only those of the cluster.
    pub(crate) owns_store: bool,
    pub(crate) link: LinkSettings,
}

/// A replica while it does not lead.
pub(crate) struct Follower {
    settings: FollowSettings,
    state: Mutex<FollowState>,
    /// Number of catalogs whose listed state is not in the store yet.
    pub(crate) metric: Gauge,
}

/// The place from which a request for a catalog is answered.
pub(crate) enum AnswerPlace {
    /// The store of this replica.
    Own,
    /// The leader, because the store does not have the state that statuses may name.
    Forward(Arc<LeaderLink>),
    /// None. A retry may reach another replica.
    Unavailable,
}

impl Follower {
    /// Creates a replica that has no contact yet.
    pub(crate) fn new(settings: FollowSettings) -> Self {
        Self {
            settings,
            state: Mutex::new(FollowState::new()),
            metric: Gauge::default(),
        }
    }

    /// Records whether this replica leads. What a leader has published is what it serves.
    pub(crate) fn set_leading(&self, is_leading: bool) {
        *self.lock() = FollowState {
            is_leading,
            ..FollowState::new()
        };
        self.metric.set(0);
    }

    /// Follows the leader until it is dropped. `hurry` is told when the Lease should be read.
    pub(crate) async fn follow(&self, sight: watch::Receiver<LeaseSight>, hurry: &Notify) {
        let mut copies = JoinSet::new();
        let mut misses = 0;
        loop {
            let lease = sight.borrow().clone();
            let link = self.link(&lease);
            self.look_at(lease);
            let is_contacted = match &link {
                Some(link) => self.exchange(link).await,
                None => false,
            };
            misses = if is_contacted { 0 } else { misses + 1 };
            if misses > 0 && (misses <= EAGER || misses.is_multiple_of(EAGER)) {
                hurry.notify_one();
            }
            if let Some(link) = link.filter(|_| is_contacted) {
                self.start_copies(&link, &mut copies);
            }
            tokio::select! {
                () = sleep(ASK_INTERVAL) => {}
                Some(copied) = copies.join_next() => self.copied(copied).await,
            }
        }
    }

    /// Records the Lease as it was read, and how much is lacking.
    fn look_at(&self, lease: LeaseSight) {
        let mut state = self.lock();
        state.see(lease);
        self.metric
            .set(i64::try_from(state.lacking().count()).unwrap_or(i64::MAX));
    }

    /// Stops to serve and tells the leader, so that it does not wait for this replica.
    pub(crate) async fn leave(&self) {
        let link = {
            let mut state = self.lock();
            state.has_left = true;
            state.link.clone()
        };
        if let Some(link) = link
            && let Err(error) = link.leave(&self.settings.me).await
        {
            tracing::debug!(error = format!("{error:#}"), "cannot tell the leader of the end");
        }
    }

    /// Returns the place from which a request for a catalog is answered now.
    pub(crate) fn route(&self, catalog: &str) -> AnswerPlace {
        let mut state = self.lock();
        if state.is_leading {
            return AnswerPlace::Own;
        }
        if state.has_left {
            return AnswerPlace::Unavailable;
        }
        let standing = state.standing();
        let is_behind = state.is_behind(catalog);
        match (standing, &state.link) {
            (Standing::CutOff, _) => AnswerPlace::Unavailable,
            _ if !is_behind => AnswerPlace::Own,
            (Standing::InStep, Some(link)) => AnswerPlace::Forward(Arc::clone(link)),
            _ => AnswerPlace::Unavailable,
        }
    }

    /// Returns the leader if this replica lacks something that it has listed: such as an object that another replica has named.
    pub(crate) fn leader_of_missing(&self) -> Option<Arc<LeaderLink>> {
        let mut state = self.lock();
        let lacks = !state.is_leading && state.standing() == Standing::InStep && state.lacking().next().is_some();
        lacks.then(|| state.link.clone())?
    }

    /// Returns the relation to the leader, and true if there was a contact; `None` in the leader itself.
    pub(crate) fn standing(&self) -> Option<(Standing, bool)> {
        let mut state = self.lock();
        (!state.is_leading).then(|| (state.standing(), state.fence.had_contact()))
    }

    /// Returns the holder of the Lease if that is another program.
    pub(crate) fn other_program(&self) -> Option<String> {
        let state = self.lock();
        state.has_other_leader().then(|| state.lease.holder.clone())
    }

    /// Returns the client for the leader, a new one if another replica leads.
    fn link(&self, lease: &LeaseSight) -> Option<Arc<LeaderLink>> {
        let address = lease.address.as_deref()?;
        let mut state = self.lock();
        if let Some(link) = state.link.as_ref().filter(|link| link.is_to(address)) {
            return Some(Arc::clone(link));
        }
        match LeaderLink::new(address, &self.settings.link, &self.settings.store) {
            Ok(link) => state.link = Some(Arc::new(link)),
            Err(error) => {
                tracing::error!(address, error = format!("{error:#}"), "cannot follow the leader");
                state.link = None;
            }
        }
        state.link.clone()
    }

    /// Makes a new client for the leader at the next request, because the certificates to trust have changed.
    pub(crate) fn forget_link(&self) {
        self.lock().link = None;
    }

    /// Asks for the list and reports. Returns true if the leader has answered.
    async fn exchange(&self, link: &LeaderLink) -> bool {
        // Twice if there is a new list, so that the leader need not wait a second for the report about it.
        for _ in 0..2 {
            let report = {
                let state = self.lock();
                FollowerReport {
                    replica: self.settings.me.clone(),
                    tag: state.tag.clone(),
                    lacks: state.lacks(),
                }
            };
            let sent = Instant::now().into_std();
            match link.ask(report).await {
                Ok(list) => {
                    let is_new = list.is_some();
                    if let Some((list, tag)) = list {
                        self.apply(list, tag).await;
                    }
                    self.lock().fence.contacted(sent);
                    if !is_new {
                        return true;
                    }
                }
                Err(error) => {
                    tracing::debug!(error = format!("{error:#}"), "the leader does not answer");
                    return false;
                }
            }
        }
        true
    }

    /// Serves by a new list from now on.
    async fn apply(&self, list: ReplicaList, tag: String) {
        let mut held = self.lock().held.clone();
        held.retain(|name, _| list.catalogs.contains_key(name));
        for (name, listed) in &list.catalogs {
            if held.get(name) != Some(listed) {
                self.look(name, &mut held).await;
            }
        }
        let names: BTreeSet<String> = list.catalogs.keys().cloned().collect();
        {
            let mut state = self.lock();
            (state.listed, state.held, state.tag) = (list.catalogs, held, tag);
        }
        if self.settings.owns_store
            && let Err(error) = self.remove_others(&names).await
        {
            tracing::warn!(
                error = model::text::chain(&error),
                "cannot remove catalogs that the leader does not list"
            );
        }
    }

    async fn remove_others(&self, names: &BTreeSet<String>) -> Result<(), ReadError> {
        let store = &*self.settings.store;
        for name in publish::catalog_names(store).await?.catalogs {
            if !names.contains(name.as_str()) {
                publish::remove(store, &name).await?;
                tracing::info!(catalog = %name, "removed a catalog that the leader does not list");
            }
        }
        Ok(())
    }

    /// Reads the pointer of a catalog in the store.
    async fn look(&self, catalog: &str, held: &mut BTreeMap<String, Sha256>) {
        match pointer_hash(&*self.settings.store, catalog).await {
            Ok(Some(hash)) => drop(held.insert(catalog.to_owned(), hash)),
            Ok(None) => drop(held.remove(catalog)),
            Err(error) => {
                held.remove(catalog);
                tracing::warn!(catalog, error = model::text::chain(&error), "cannot read the pointer");
            }
        }
    }

    fn start_copies(&self, link: &Arc<LeaderLink>, copies: &mut JoinSet<(String, bool)>) {
        let now = Instant::now();
        let mut state = self.lock();
        let waiting = |state: &FollowState, name: &str| state.failed.get(name).is_some_and(|next| now < *next);
        let names: Vec<String> = state
            .lacking()
            .filter(|name| !waiting(&state, name))
            .map(str::to_owned)
            .collect();
        for name in names {
            if copies.len() >= COPIES_MAX {
                break;
            }
            // Not again before this one has ended.
            state.failed.insert(name.clone(), now + COPY_TIME + COPY_RETRY);
            let link = Arc::clone(link);
            copies.spawn(async move {
                let Ok(catalog) = name.parse::<CatalogName>() else {
                    return (name, false);
                };
                let report = timeout(COPY_TIME, link.copier.copy(&catalog)).await;
                (name, report.is_ok_and(|report| report.error.is_none()))
            });
        }
    }

    async fn copied(&self, ended: Result<(String, bool), tokio::task::JoinError>) {
        let Ok((name, is_copied)) = ended else {
            // After a panic the time-out of the copy lets it begin again.
            return;
        };
        let mut held = BTreeMap::new();
        self.look(&name, &mut held).await;
        let mut state = self.lock();
        match held.remove(&name) {
            Some(hash) => drop(state.held.insert(name.clone(), hash)),
            None => drop(state.held.remove(&name)),
        }
        match is_copied {
            true => drop(state.failed.remove(&name)),
            false => drop(state.failed.insert(name, Instant::now() + COPY_RETRY)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, FollowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the hash of a catalog's pointer in the store; `None` if there is none.
pub(crate) async fn pointer_hash(store: &dyn Store, catalog: &str) -> Result<Option<Sha256>, ReadError> {
    let Ok(name) = catalog.parse::<CatalogName>() else {
        return Ok(None);
    };
    match store.read_all(&Key::Current(name), DOCUMENT_MAX).await {
        Ok((bytes, _)) => Ok(Some(Sha256::of(&bytes))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

// A copy that is late is served by the leader, so readiness does not depend on it.
const _: () = assert!(LAG.as_secs() > ASK_INTERVAL.as_secs());
