//! Reasons for which a catalog is behind its source.

use std::time::SystemTime;

use model::{CatalogName, Current, Hold, Rfc3339, Ring, Status};
use serde::Serialize;
use serde_with::As;

use crate::history::minute;

/// Text about a catalog after a rollback.
pub const ROLLED_BACK: &str =
    "rolled back: it stays at this state until its source changes or a poll is forced";

/// Reasons for which a catalog has not the newest content of its source, with their dates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogDelay {
    /// True after a rollback.
    #[serde(skip)]
    is_rolled_back: bool,
    /// Hold of content that looks like an accident.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Hold>,
    /// Place of a ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<RingDelay>,
}

/// Place of a ring among the states of the catalog that it follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RingDelay {
    /// Name of the catalog that is followed.
    pub of: CatalogName,
    /// Time at which that one published the state of the ring; `None` before the first.
    #[serde(serialize_with = "As::<Option<Rfc3339>>::serialize")]
    pub since: Option<SystemTime>,
    /// Number of states that wait.
    pub waiting: usize,
    /// Time at which the first of them is old enough; `None` if none waits for that.
    #[serde(serialize_with = "As::<Option<Rfc3339>>::serialize")]
    pub until: Option<SystemTime>,
}

impl CatalogDelay {
    /// Returns the delay of a catalog with this pointer and this status.
    pub fn of(current: &Current, status: Option<&Status>) -> Self {
        let held = status.and_then(Status::held);
        // Over another state, such as that of a rollback, the next poll judges anew.
        let base = Some(current.snapshot.digest.sha256);
        let held = held.filter(|(rejected, _)| rejected.base == base);
        Self {
            is_rolled_back: current.rolled_back.is_some(),
            held: held.map(|(_, hold)| hold.clone()),
            ring: current.source.ring.as_deref().map(RingDelay::new),
        }
    }

    /// Returns one line for each reason.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_rolled_back {
            lines.push(ROLLED_BACK.to_owned());
        }
        lines.extend(self.held.as_ref().map(held_line));
        lines.extend(self.ring.as_ref().map(RingDelay::line));
        lines
    }
}

impl RingDelay {
    fn new(ring: &Ring) -> Self {
        Self {
            of: ring.of.clone(),
            since: ring.at.as_ref().map(|at| at.published_at),
            waiting: ring.waiting.len(),
            until: ring.next_at(),
        }
    }

    fn line(&self) -> String {
        let of = &self.of;
        let place = match self.since {
            Some(since) => format!("follows {of}, at its state of {}", minute(since)),
            None => format!("follows {of}, and has no state of it yet"),
        };
        let waiting = match self.waiting {
            0 => return format!("{place}; no state waits"),
            1 => "1 state waits".to_owned(),
            count => format!("{count} states wait"),
        };
        match self.until {
            Some(until) => format!("{place}; {waiting}, the first until {}", minute(until)),
            None => format!("{place}; {waiting} for promote"),
        }
    }
}

fn held_line(hold: &Hold) -> String {
    let since = minute(hold.since);
    if hold.released {
        return format!("new content was held back since {since}; the next poll publishes it");
    }
    match hold.until {
        Some(until) => {
            let until = minute(until);
            format!("new content is held back since {since} until {until}")
        }
        None => format!("new content is held back since {since} until it is released"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn hour(hours: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(3600 * hours)
    }

    #[test]
    fn hold_tells_its_dates_or_what_ends_it() {
        let mut hold = Hold {
            since: hour(1),
            until: Some(hour(73)),
            released: false,
        };
        let timed = "new content is held back since 1970-01-01 01:00 until 1970-01-04 01:00";
        assert_eq!(held_line(&hold), timed);
        hold.until = None;
        assert!(held_line(&hold).ends_with(" until it is released"));
        hold.released = true;
        assert!(held_line(&hold).ends_with("; the next poll publishes it"));
    }

    #[test]
    fn ring_tells_its_state_and_what_waits() {
        let mut ring = RingDelay {
            of: "dev".parse().unwrap(),
            since: Some(hour(0)),
            waiting: 2,
            until: Some(hour(48)),
        };
        let line = "follows dev, at its state of 1970-01-01 00:00; 2 states wait, \
                    the first until 1970-01-03 00:00";
        assert_eq!(ring.line(), line);
        ring.until = None;
        ring.waiting = 1;
        assert!(ring.line().ends_with("; 1 state waits for promote"));
        ring.waiting = 0;
        assert!(ring.line().ends_with("; no state waits"));
        ring.since = None;
        assert!(
            ring.line()
                .starts_with("follows dev, and has no state of it yet; ")
        );
    }
}
