use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::source_ref::read_short_list;
use crate::{CatalogName, Previous};

/// Place of a ring among the states of the catalog that it follows. It is a part of the pointer, so
/// one write moves the ring, and collection keeps what the ring will need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ring {
    /// Name of the catalog that is followed.
    pub of: CatalogName,
    /// Age in seconds that a state must have; `None` if the ring moves by hand only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_seconds: Option<u64>,
    /// State of the followed catalog at which the ring is; `None` before the first one is old
    /// enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Previous>,
    /// Newer states that wait for their age or for a person, oldest first.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "read_short_list"
    )]
    pub waiting: Vec<Previous>,
    /// True until the ring has its first state. The pointer names one that waits, and readers do
    /// not get it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_placeholder: bool,
}

impl Ring {
    /// Returns the states that collection keeps: that of the ring, and those that wait.
    pub fn states(&self) -> impl Iterator<Item = &Previous> {
        self.at.iter().chain(&self.waiting)
    }

    /// Returns the time at which a state is old enough; `None` if the ring moves by hand only.
    pub fn ripe_at(&self, state: &Previous) -> Option<SystemTime> {
        let after = Duration::from_secs(self.after_seconds?);
        state.published_at.checked_add(after)
    }

    /// Returns the time at which the next state is old enough; `None` if none waits for that.
    pub fn next_at(&self) -> Option<SystemTime> {
        self.ripe_at(self.waiting.first()?)
    }
}
