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
}

/// Returns true if a catalog that was worked on is polled now. `version` is that of its object, and `has_content` is true if the store
/// has content for it.
pub(crate) fn is_due(last: &LastWork, version: &ObjectVersion, has_content: bool, now: Instant) -> bool {
    let is_lost = matches!(last.fact, Fact::Stored { .. }) && !has_content;
    last.version != *version || is_lost || last.next.is_some_and(|next| next <= now)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn stored() -> Fact {
        Fact::Stored {
            reference: "quay.io/a/b@sha256:1".to_owned(),
            unpacked: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Default::default()),
        }
    }

    fn version(uid: &str, generation: i64, limits: Option<&str>) -> ObjectVersion {
        let limits = limits.map(|limits| ("catalog-mirror/limits".to_owned(), limits.to_owned()));
        ObjectVersion {
            uid: uid.to_owned(),
            generation,
            annotations: limits.into_iter().collect(),
        }
    }

    fn last(fact: Fact, next: Option<Instant>) -> LastWork {
        LastWork {
            version: version("u", 2, None),
            fact,
            failures: 0,
            next,
        }
    }

    #[test]
    fn poll_is_due_for_new_objects_and_after_the_interval() {
        let now = Instant::now();
        let failed = Fact::Failed {
            message: String::new(),
            is_terminal: true,
        };
        let (known, edited) = (version("u", 2, None), version("u", 3, None));
        let (recreated, annotated) = (version("v", 2, None), version("u", 2, Some("{documents: 7}")));
        let due =
            |fact: &Fact, next, version, has_content| is_due(&last(fact.clone(), next), version, has_content, now);
        for changed in [&recreated, &edited, &annotated] {
            assert!(due(&stored(), None, changed, true), "{changed:?}");
        }
        assert!(!due(&stored(), None, &known, true), "without an interval");
        assert!(due(&stored(), None, &known, false), "lost content");
        assert!(!due(&failed, None, &known, true), "blocked");
        assert!(!due(&failed, None, &known, false), "blocked without content");
        for fact in [stored(), failed] {
            assert!(!due(&fact, Some(now + MINUTE), &known, true), "before the next poll");
            assert!(due(&fact, Some(now), &known, true), "at the next poll");
        }
    }
}
