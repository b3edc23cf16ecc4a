//! States of a catalog that were published.

use std::fmt;
use std::time::SystemTime;

use model::{ChangedPackages, Current, Previous, Rfc3339, Sha256, Snapshot};
use serde::Serialize;
use serde_with::As;
use store::{ReadError, Store, find_stored};

/// Publication of a catalog, or state of another one for which a ring waits.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryState {
    /// Number of the publication; `None` for a state that waits.
    pub serial: Option<u64>,
    /// The sha256 of its `all.json`.
    pub content_hash: Sha256,
    /// Time of the publication; of a state that waits the one in the catalog that the ring follows.
    #[serde(serialize_with = "As::<Rfc3339>::serialize")]
    pub published_at: SystemTime,
    /// Number of packages, if the state is stored.
    pub packages: Option<usize>,
    /// Changes since the state before, if that is stored too.
    pub changes: Option<ChangedPackages>,
    /// False once a collection has removed it.
    pub is_stored: bool,
    /// True for the state that clients get.
    pub is_published: bool,
    /// True for that state after a rollback.
    pub is_held_back: bool,
    /// Wait of a state for a ring; `None` for a publication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waiting>,
}

/// Wait of a state of the catalog that a ring follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Time at which it is old enough; `None` if the ring moves by hand only.
    #[serde(serialize_with = "As::<Option<Rfc3339>>::serialize")]
    pub until: Option<SystemTime>,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.until {
            Some(until) => write!(f, "waits until {}", minute(until)),
            None => f.write_str("waits for promote"),
        }
    }
}

/// Returns a date for people, in UTC. Minutes are exact enough, and columns stay narrow.
pub(crate) fn minute(time: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text[..16].replace('T', " ")
}

/// Returns the publications that the pointer of a catalog remembers, newest first. Before them come
/// the states for which a ring waits, with the changes that each would bring.
///
/// # Errors
/// A snapshot that cannot be read. One that is missing was collected.
pub async fn history(store: &dyn Store, current: &Current) -> Result<Vec<HistoryState>, ReadError> {
    let mut history = HistoryReader {
        store,
        states: Vec::new(),
        older: None,
    };
    for publication in current.publications().into_iter().rev() {
        let is_published = publication.serial == current.serial;
        // Before the first state of a ring, the pointer names one that waits.
        if is_published && current.source.is_placeholder() {
            continue;
        }
        let state = history.add(&publication, None).await?;
        state.is_published = is_published;
        state.is_held_back = is_published && current.rolled_back.is_some();
    }
    if let Some(ring) = &current.source.ring {
        for waiting in &ring.waiting {
            let until = ring.ripe_at(waiting);
            history.add(waiting, Some(Waiting { until })).await?;
        }
    }
    history.states.reverse();
    Ok(history.states)
}

/// Reader of states from the oldest one on.
struct HistoryReader<'s> {
    store: &'s dyn Store,
    states: Vec<HistoryState>,
    older: Option<Snapshot>,
}

impl HistoryReader<'_> {
    /// Adds the next state, which is not published.
    async fn add(
        &mut self,
        state: &Previous,
        waits: Option<Waiting>,
    ) -> Result<&mut HistoryState, ReadError> {
        let snapshot: Option<Snapshot> = find_stored(self.store, &state.snapshot.digest).await?;
        let is_first = state.serial == 1 && waits.is_none();
        let is_comparable = self.older.is_some() || is_first;
        let known = snapshot.as_ref().filter(|_| is_comparable);
        let older = self.older.as_ref();
        let added = HistoryState {
            serial: waits.is_none().then_some(state.serial),
            content_hash: state.content_hash,
            published_at: state.published_at,
            packages: snapshot.as_ref().map(|snapshot| snapshot.packages.len()),
            changes: known.map(|newer| ChangedPackages::between(older, newer)),
            is_stored: snapshot.is_some(),
            is_published: false,
            is_held_back: false,
            waits,
        };
        self.older = snapshot;
        self.states.push(added);
        let last = self.states.len() - 1;
        Ok(&mut self.states[last])
    }
}
