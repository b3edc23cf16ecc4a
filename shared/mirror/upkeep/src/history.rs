//! States of a catalog that were published.

use std::time::SystemTime;

use model::{Current, Rfc3339, Sha256, Snapshot};
use publish::ChangedPackages;
use serde::Serialize;
use serde_with::As;
use store::{ReadError, Store, find_stored};

/// Publication of a catalog.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryState {
    /// Number of the publication.
    pub serial: u64,
    /// The sha256 of its `all.json`.
    pub content_hash: Sha256,
    /// Time of the publication.
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
}

/// Returns the publications that the pointer of a catalog remembers, newest first.
///
/// # Errors
/// A snapshot that cannot be read. One that is missing was collected.
pub async fn history(store: &dyn Store, current: &Current) -> Result<Vec<HistoryState>, ReadError> {
    let mut states = Vec::new();
    let mut older: Option<Snapshot> = None;
    for publication in current.publications().into_iter().rev() {
        let snapshot: Option<Snapshot> = find_stored(store, &publication.snapshot.digest).await?;
        let is_comparable = older.is_some() || publication.serial == 1;
        let known = snapshot.as_ref().filter(|_| is_comparable);
        let is_published = publication.serial == current.serial;
        states.push(HistoryState {
            serial: publication.serial,
            content_hash: publication.content_hash,
            published_at: publication.published_at,
            packages: snapshot.as_ref().map(|snapshot| snapshot.packages.len()),
            changes: known.map(|newer| ChangedPackages::between(older.as_ref(), newer)),
            is_stored: snapshot.is_some(),
            is_published,
            is_held_back: is_published && current.rolled_back.is_some(),
        });
        older = snapshot;
    }
    states.reverse();
    Ok(states)
}
