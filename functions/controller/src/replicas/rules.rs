//! The rules by which replicas serve the same content: no status names an image whose content some ready replica does not serve.
//!
//! The leader publishes a new state in its list, and writes the status when each follower has the list. From then on a follower
//! serves a catalog from its own store only if that has the listed state; else it forwards requests to the leader. A follower that
//! the leader does not hear of stops to serve by itself, because it sees in the Lease that a leader is alive. If it sees none, it
//! serves what it has: without a leader no status changes.
//!
//! Times are those of one process each. Only their lengths have to agree between two processes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use crate::election::SightTimes;

/// Time for which a follower relies on what the leader told it last. A follower that needs longer to copy a catalog forwards its
/// requests.
pub(crate) const LAG: Duration = Duration::from_secs(30);
/// Time after the last contact before which a change of the Lease may be older than that contact: a follower without contact reads
/// the Lease for the first time within it.
pub(crate) const FIRST_LOOK: Duration = Duration::from_secs(10);
/// Maximum age of what a follower without contact knows of the Lease: it reads it every 5 s, for 10 s at most.
pub(crate) const LOOK: Duration = Duration::from_secs(15);
/// Time after the start of a renewal within which every follower without contact has seen it: 10 s for the renewal, and [`LOOK`].
pub(crate) const SEEN: Duration = Duration::from_secs(25);

/// Relation of a follower to the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The leader waits for this replica before it writes a status.
    InStep,
    /// There is no leader. What is served is what the statuses name, and stays so.
    Leaderless,
    /// A leader is alive and does not answer, or this process has slept. Other statuses may have been written.
    CutOff,
    /// Neither the leader nor the API server answers.
    Blind,
}

/// A follower's knowledge about its leader.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fence {
    /// Start of the last request that a leader answered, or of this replica's following.
    contact: Instant,
    had_contact: bool,
    /// True from the time at which a leader was seen alive that does not answer. Only a contact ends it, because that leader may
    /// have written a status before it ended.
    is_cut_off: bool,
}

impl Fence {
    /// Begins to follow.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            contact: now,
            had_contact: false,
            is_cut_off: false,
        }
    }

    /// Records that the leader has answered a request that was sent at `sent`.
    pub(crate) fn contacted(&mut self, sent: Instant) {
        *self = Self {
            contact: sent,
            had_contact: true,
            is_cut_off: false,
        };
    }

    /// Sets what a leader that was seen alive has set.
    #[cfg(test)]
    pub(super) fn cut_off(&mut self) {
        self.is_cut_off = true;
    }

    /// Returns true after the first contact.
    pub(crate) const fn had_contact(&self) -> bool {
        self.had_contact
    }

    /// Returns the relation to the leader.
    pub(crate) fn standing(&mut self, lease: Option<SightTimes>, now: Instant) -> Standing {
        if now < self.contact + LAG {
            return Standing::InStep;
        }
        let Some(times) = lease else {
            return Standing::Blind;
        };
        if now > times.read + LOOK {
            // Without an attempt it is this process that stood still, and the leader went on.
            return match now <= times.tried + LOOK {
                true => Standing::Blind,
                false => Standing::CutOff,
            };
        }
        self.is_cut_off |= times.changed >= self.contact + FIRST_LOOK;
        match self.is_cut_off {
            true => Standing::CutOff,
            false => Standing::Leaderless,
        }
    }
}

/// A follower, as the leader knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FollowerRecord {
    /// Time at which its last request arrived.
    pub(crate) contact: Instant,
    /// Version of the list that it serves by.
    pub(crate) version: u64,
    /// Catalogs whose listed state it has not copied yet.
    pub(crate) lacks: BTreeSet<String>,
}

/// A state of a catalog in the leader's list, before the status names it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListedState {
    pub(crate) catalog: String,
    /// Version of the list from which on it has this state.
    pub(crate) version: u64,
    /// Time at which the list got it.
    pub(crate) since: Instant,
    /// True if the status names another image now, whose content an unknown replica may serve.
    pub(crate) is_replacement: bool,
}

/// The leader's knowledge about its followers.
#[derive(Debug, Clone)]
pub(crate) struct Followers {
    /// Followers by name.
    pub(crate) known: BTreeMap<String, FollowerRecord>,
    /// Start of this leadership. Replicas that the leader does not know yet had contact with an earlier one at the latest then.
    pub(crate) since: Instant,
    /// Starts of the last renewals of the Lease that succeeded, oldest first.
    pub(crate) renewals: Vec<Instant>,
}

impl Followers {
    /// Returns true if the status may name the image of this state now.
    pub(crate) fn serve(&self, state: &ListedState, now: Instant) -> bool {
        let knows = |follower: &FollowerRecord| {
            follower.version >= state.version && (!follower.lacks.contains(&state.catalog) || now >= state.since + LAG)
        };
        let all_known = self
            .known
            .values()
            .all(|follower| knows(follower) || self.is_fenced(follower.contact, now));
        all_known && (!state.is_replacement || self.is_fenced(self.since, now))
    }

    /// Returns true if a follower whose last contact was then cannot serve by an earlier list any more.
    pub(crate) fn is_fenced(&self, contact: Instant, now: Instant) -> bool {
        now >= contact + LAG
            && self
                .renewals
                .iter()
                .any(|start| *start >= contact + FIRST_LOOK && now >= *start + SEEN)
    }

    /// Records a renewal of the Lease, and forgets followers that are gone.
    pub(crate) fn renewed(&mut self, start: Instant, now: Instant) {
        // One of the last three began at least SEEN ago and, for a contact that ended LAG ago, late enough.
        if self.renewals.len() >= 3 {
            self.renewals.remove(0);
        }
        self.renewals.push(start);
        let gone: Vec<String> = self
            .known
            .iter()
            .filter(|(_, follower)| self.is_fenced(follower.contact, now))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.known.remove(&name);
        }
    }
}
