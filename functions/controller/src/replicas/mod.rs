//! Replicas: each serves, and one of them polls. The others copy what it has published, and report to it.

mod follow_state;
mod follower;
mod forward;
mod leader;
mod link;
#[cfg(test)]
mod model;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ::model::Sha256;
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    follower::{FollowSettings, Follower, pointer_hash},
    forward::forward,
    leader::{Leadership, answer},
    link::LinkSettings,
    rules::{FIRST_LOOK, Standing},
};

/// Path of the leader's list.
pub(crate) const LIST_PATH: &str = "/replicas";

/// Header with the name of the replica that asks.
const REPLICA_HEADER: &str = "catalog-mirror-replica";

/// Header with the catalogs whose listed state the replica has not copied yet, separated by commas, or [`ALL`].
const LACKS_HEADER: &str = "catalog-mirror-lacks";

/// Header of a replica that ends and serves nothing any more.
const LEAVES_HEADER: &str = "catalog-mirror-leaves";

/// Value of [`LACKS_HEADER`] for more names than a header should have.
const ALL: &str = "*";

/// List of the states that the leader has published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReplicaList {
    /// Name of the leader.
    leader: String,
    /// Version of the list. Versions of one leader grow.
    version: u64,
    /// Hash of `current.json`, by catalog.
    catalogs: BTreeMap<String, Sha256>,
}
