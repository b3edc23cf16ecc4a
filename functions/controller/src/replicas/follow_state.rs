//! The knowledge of a follower about its leader.

use std::{collections::BTreeMap, sync::Arc};

use model::Sha256;
use tokio::time::Instant;

use super::{
    ALL,
    link::LeaderLink,
    rules::{Fence, Standing},
};
use crate::election::LeaseSight;

/// Maximum number of bytes of the names of catalogs in a report. Servers limit the size of headers.
const NAMES_MAX: usize = 4096;

/// A follower's knowledge about the leader and its own store.
pub(super) struct FollowState {
    pub(super) is_leading: bool,
    /// True once the leader does not wait for this replica any more.
    pub(super) has_left: bool,
    pub(super) fence: Fence,
    pub(super) lease: LeaseSight,
    pub(super) link: Option<Arc<LeaderLink>>,
    /// Entity tag of the list; empty before the first one.
    pub(super) tag: String,
    /// Hash of the pointer that the leader has published, by catalog.
    pub(super) listed: BTreeMap<String, Sha256>,
    /// Hash of the pointer in the store, by catalog that was listed.
    pub(super) held: BTreeMap<String, Sha256>,
    /// Time before which a catalog whose copy failed is not copied again.
    pub(super) failed: BTreeMap<String, Instant>,
}

impl FollowState {
    /// Returns the state of a replica that has had no contact yet.
    pub(super) fn new() -> Self {
        Self {
            is_leading: false,
            has_left: false,
            fence: Fence::new(Instant::now().into_std()),
            lease: LeaseSight::default(),
            link: None,
            tag: String::new(),
            listed: BTreeMap::new(),
            held: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Records the Lease as it was read.
    pub(super) fn see(&mut self, lease: LeaseSight) {
        self.lease = lease;
        if self.has_other_leader()
            && let Some(times) = self.lease.times
        {
            // What an earlier leader has listed does not count any more. The other program waits for no replica, and each of them
            // pulls what the statuses name, so this is as good as a contact: the next leader begins after it.
            *self = Self {
                has_left: self.has_left,
                lease: std::mem::take(&mut self.lease),
                ..Self::new()
            };
            self.fence.contacted(times.read);
        }
    }

    /// True if another program has the Lease.
    pub(super) fn has_other_leader(&self) -> bool {
        !self.is_leading && self.lease.address.is_none() && !self.lease.holder.is_empty()
    }

    /// Returns the relation to the leader now.
    pub(super) fn standing(&mut self) -> Standing {
        self.fence.standing(self.lease.times, Instant::now().into_std())
    }

    /// True if the store does not have the listed state of a catalog.
    pub(super) fn is_behind(&self, catalog: &str) -> bool {
        let listed = self.listed.get(catalog);
        listed.is_some() && listed != self.held.get(catalog)
    }

    /// Returns the catalogs whose listed state is not in the store.
    pub(super) fn lacking(&self) -> impl Iterator<Item = &str> {
        self.listed
            .keys()
            .map(String::as_str)
            .filter(|name| self.is_behind(name))
    }

    /// Returns the names of the catalogs that are lacking, as the header has them.
    pub(super) fn lacks(&self) -> String {
        let names: Vec<&str> = self.lacking().collect();
        let text = names.join(",");
        if text.len() > NAMES_MAX { ALL.to_owned() } else { text }
    }
}
