//! The leader's list of published states, and what its followers report.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH},
    },
    response::{IntoResponse, Response},
};
use model::Sha256;
use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use super::{
    ALL, LACKS_HEADER, LEAVES_HEADER, REPLICA_HEADER, ReplicaList,
    rules::{FollowerRecord, Followers, ListedState},
};

/// Maximum number of followers that are kept. A Deployment has a few.
const FOLLOWERS_MAX: usize = 64;

/// Time between two looks at the followers while a status waits for them.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// State that the leader shares with its followers. Empty in a replica that does not lead.
#[derive(Default)]
pub(crate) struct Leadership {
    state: Mutex<Option<LeaderState>>,
    /// Told when a follower has reported.
    reported: Notify,
    /// Followers that the leader hears of. Value 0 in a replica that does not lead.
    pub(crate) metric: Gauge,
}

struct LeaderState {
    /// Name of this replica.
    me: String,
    /// Grows with each change of the list.
    version: u64,
    listed: BTreeMap<String, (Sha256, ListedState)>,
    /// `None` without an election: then this is the only replica.
    followers: Option<Followers>,
}

impl Leadership {
    /// Begins to lead with these states, by the hash of their pointers.
    pub(crate) fn begin(&self, me: &str, has_replicas: bool, published: BTreeMap<String, Sha256>) {
        let now = Instant::now().into_std();
        let followers = has_replicas.then(|| Followers {
            known: BTreeMap::new(),
            since: now,
            renewals: Vec::new(),
        });
        let state = LeaderState {
            me: me.to_owned(),
            // Another leadership of the same process has other versions.
            version: rand::random::<u32>().into(),
            listed: BTreeMap::new(),
            followers,
        };
        *self.lock() = Some(state);
        for (catalog, pointer) in published {
            self.list(&catalog, Some(pointer));
        }
    }

    /// Ends: followers are told that this replica does not lead.
    pub(crate) fn end(&self) {
        *self.lock() = None;
        self.metric.set(0);
    }

    /// Records a renewal of the Lease that began at `start`.
    pub(crate) fn renewed(&self, start: std::time::Instant) {
        if let Some(followers) = self.lock().as_mut().and_then(|state| state.followers.as_mut()) {
            followers.renewed(start, Instant::now().into_std());
            self.metric
                .set(i64::try_from(followers.known.len()).unwrap_or(i64::MAX));
        }
    }

    /// Puts the published state of a catalog into the list, by the hash of its pointer; `None` removes it.
    pub(crate) fn list(&self, catalog: &str, pointer: Option<Sha256>) {
        let mut state = self.lock();
        let Some(state) = state.as_mut() else { return };
        if state.listed.get(catalog).map(|(listed, _)| *listed) == pointer {
            return;
        }
        state.version += 1;
        let Some(pointer) = pointer else {
            state.listed.remove(catalog);
            return;
        };
        let listed = ListedState {
            catalog: catalog.to_owned(),
            version: state.version,
            since: Instant::now().into_std(),
            is_replacement: false,
        };
        state.listed.insert(catalog.to_owned(), (pointer, listed));
    }

    /// Waits until every ready replica serves the listed state of a catalog, or none if it is not listed. `is_replacement` is true
    /// if the status names another state now. Returns at once if this replica does not lead any more.
    pub(crate) async fn until_served(&self, catalog: &str, is_replacement: bool) {
        let version = self.lock().as_ref().map_or(0, |state| state.version);
        let began = Instant::now();
        loop {
            let mut reported = pin!(self.reported.notified());
            // Before the look, so that no report is missed.
            reported.as_mut().enable();
            if self.is_served(catalog, version, is_replacement) {
                break;
            }
            // Times of the rules run out without a report.
            let _ = timeout(LOOK_INTERVAL, reported).await;
        }
        let waited_ms = began.elapsed().as_millis();
        tracing::debug!(waited_ms, "all ready replicas serve the published state");
    }

    fn is_served(&self, catalog: &str, version: u64, is_replacement: bool) -> bool {
        let state = self.lock();
        let Some(LeaderState {
            listed,
            followers: Some(followers),
            ..
        }) = state.as_ref()
        else {
            return true;
        };
        let now = Instant::now().into_std();
        let waited = match listed.get(catalog) {
            Some((_, listed)) => ListedState {
                is_replacement,
                ..listed.clone()
            },
            // It was withdrawn: a follower that has the list does not serve it.
            None => ListedState {
                catalog: String::new(),
                version,
                since: now,
                is_replacement: false,
            },
        };
        followers.serve(&waited, now)
    }

    /// Answers a follower: the list, or 304 if that is the version which it has. Its headers are its report.
    pub(crate) fn answer(&self, headers: &HeaderMap) -> Response {
        let mut state = self.lock();
        let Some(state) = state.as_mut() else {
            return StatusCode::CONFLICT.into_response();
        };
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let (Some(replica), Some(followers)) = (text(REPLICA_HEADER), state.followers.as_mut()) else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        if headers.contains_key(LEAVES_HEADER) {
            followers.known.remove(replica);
            self.reported.notify_waiters();
            return StatusCode::NO_CONTENT.into_response();
        }
        let tag = format!("\"{}:{}\"", state.me, state.version);
        let known = text(IF_NONE_MATCH.as_str());
        let version = known.and_then(|known| version_of(known, &state.me)).unwrap_or_default();
        if followers.known.len() >= FOLLOWERS_MAX && !followers.known.contains_key(replica) {
            return StatusCode::TOO_MANY_REQUESTS.into_response();
        }
        let lacks = text(LACKS_HEADER).unwrap_or_default();
        let lacks = match lacks {
            ALL => state.listed.keys().cloned().collect(),
            names => names
                .split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        };
        let record = FollowerRecord {
            contact: Instant::now().into_std(),
            version,
            lacks,
        };
        followers.known.insert(replica.to_owned(), record);
        self.metric
            .set(i64::try_from(followers.known.len()).unwrap_or(i64::MAX));
        self.reported.notify_waiters();
        if known == Some(&tag) {
            return StatusCode::NOT_MODIFIED.into_response();
        }
        let list = ReplicaList {
            leader: state.me.clone(),
            version: state.version,
            catalogs: state
                .listed
                .iter()
                .map(|(name, (pointer, _))| (name.clone(), *pointer))
                .collect(),
        };
        let body = serde_json::to_vec(&list).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(ETAG, tag);
        }
        response
    }

    fn lock(&self) -> MutexGuard<'_, Option<LeaderState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers `GET /replicas`.
pub(crate) async fn answer(State(leadership): State<Arc<Leadership>>, headers: HeaderMap) -> Response {
    leadership.answer(&headers)
}

/// Returns the version in an entity tag of this leader.
fn version_of(tag: &str, leader: &str) -> Option<u64> {
    let (name, version) = tag.trim_matches('"').rsplit_once(':')?;
    (name == leader).then(|| version.parse().ok())?
}
