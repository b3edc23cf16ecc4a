//! The decision when a catalog is polled.

use std::{collections::HashMap, time::Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{catalog::ObjectVersion, conditions::Fact};

/// The last work on a catalog by this process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LastWork {
    /// Object that was worked on.
    pub(crate) version: ObjectVersion,
    /// Digest of the image that the status named when the poll ended.
    pub(crate) named: Option<String>,
    /// Result, for the status.
    pub(crate) fact: Fact,
    /// Number of failures in a row.
    pub(crate) failures: u32,
    /// Time of the next poll; `None` if only a change of the object brings one.
    pub(crate) next: Option<Instant>,
}

/// The last work of this process on each catalog while it leads.
#[derive(Default)]
pub(crate) struct LastPolls {
    polls: Mutex<HashMap<String, LastWork>>,
    /// Told when all catalogs should be looked at.
    pub(crate) all_due: Notify,
}

impl LastPolls {
    pub(crate) fn get(&self, name: &str) -> Option<LastWork> {
        self.polls.lock().get(name).cloned()
    }

    pub(crate) fn set(&self, name: &str, poll: LastWork) {
        self.polls.lock().insert(name.to_owned(), poll);
    }

    pub(crate) fn forget(&self, name: &str) {
        self.polls.lock().remove(name);
    }

    /// Forgets all work, so that each catalog is polled when its object is seen again.
    pub(crate) fn forget_all(&self) {
        self.polls.lock().clear();
    }

    /// Lets each catalog be polled now.
    pub(crate) fn poll_all(&self) {
        self.forget_all();
        self.all_due.notify_one();
    }

    /// Returns true if the last poll of a catalog has published its content, or found it published.
    pub(crate) fn has_published(&self, name: &str) -> bool {
        let last = self.get(name);
        last.is_some_and(|last| matches!(last.fact, Fact::Stored { .. }))
    }

    /// Returns true if the last poll of a catalog has published its content while the status named
    /// the image of this digest, so that the content is later than the image.
    pub(crate) fn is_later_than(&self, name: &str, digest: &str) -> bool {
        let last = self.get(name);
        last.is_some_and(|last| {
            matches!(last.fact, Fact::Stored { .. }) && last.named.as_deref() == Some(digest)
        })
    }
}

/// Returns true if a catalog that was worked on is polled now. `version` is that of its object, and
/// `has_content` is true if the store has content for it.
pub(crate) fn is_due(
    last: &LastWork,
    version: &ObjectVersion,
    has_content: bool,
    now: Instant,
) -> bool {
    let is_lost = matches!(last.fact, Fact::Stored { .. }) && !has_content;
    last.version != *version || is_lost || last.next.is_some_and(|next| next <= now)
}
