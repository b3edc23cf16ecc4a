use std::time::SystemTime;

use bytes::Bytes;
use model::Sha256;
use serde_json::Value;

use crate::fault::Side;
use crate::holds::time;
use crate::snapshot::{referenced, sha256};

/// Number of earlier publications that a pointer remembers.
const REMEMBERED: usize = 16;

/// Pointer as it was from one time to another.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) since: u64,
    /// Time of its replacement or removal, in milliseconds. `None` while it is published.
    pub(crate) until: Option<u64>,
    /// Number of earlier removals of the catalog, or losses of its pointer.
    removals: usize,
    pub(crate) bytes: Bytes,
    pub(crate) serial: u64,
    pub(crate) content: Sha256,
    /// Revision of the source.
    pub(crate) revision: String,
    /// Hash of the stored bytes of the snapshot.
    pub(crate) snapshot: Sha256,
    /// Fields that must not change while the serial stays: content, snapshot, date and history.
    pub(crate) publication: [Value; 4],
}

/// All states of one catalog in one store, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) states: Vec<State>,
    removals: usize,
}

/// History of a catalog that was never published.
pub(crate) static NEVER_PUBLISHED: History = History {
    states: Vec::new(),
    removals: 0,
};

impl State {
    fn read(since: u64, removals: usize, bytes: &Bytes) -> Result<Self, String> {
        let document: Value =
            serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
        let fields = ["contentHash", "snapshot", "publishedAt", "previous"];
        Ok(Self {
            since,
            until: None,
            removals,
            bytes: bytes.clone(),
            serial: document["serial"].as_u64().ok_or("it has no serial")?,
            content: sha256(&document["contentHash"])?,
            revision: document["source"]["revision"]
                .as_str()
                .ok_or("it has no revision")?
                .to_owned(),
            snapshot: referenced(&document["snapshot"])?,
            publication: fields.map(|field| document[field].clone()),
        })
    }

    /// Returns the date of the publication.
    pub(crate) fn published_at(&self) -> Result<SystemTime, String> {
        time(&self.publication[2])?.ok_or_else(|| "it has no date".to_owned())
    }

    /// True if this is the publication of `last`, whose source was seen anew, or the next one.
    fn follows(&self, last: &Self) -> bool {
        self.serial == last.serial
            || self.serial == last.serial + 1
                && self.publication[3] == last.as_previous()
                && self.is_dated_after(last)
    }

    /// True if this publication is dated at least a second after `last`: readers take the date for
    /// Last-Modified.
    fn is_dated_after(&self, last: &Self) -> bool {
        // RFC 3339 in UTC with whole seconds sorts as text.
        let date = |state: &Self| state.publication[2].as_str().map(str::to_owned);
        date(self) > date(last)
    }

    /// Returns the history that the next publication has to carry.
    fn as_previous(&self) -> Value {
        let [content, reference, published, previous] = &self.publication;
        let this = serde_json::json!({
            "serial": self.serial,
            "contentHash": content,
            "publishedAt": published,
            "snapshot": reference,
        });
        let earlier = previous.as_array().into_iter().flatten().cloned();
        std::iter::once(this)
            .chain(earlier)
            .take(REMEMBERED)
            .collect()
    }

    /// True if two states of one serial may both have been published. In a copy, a catalog that was
    /// removed and polled again may look like the one before, as long as the contents are equal.
    fn agrees(&self, other: &Self, side: Side) -> bool {
        match side {
            Side::Origin => self.publication == other.publication,
            Side::Copy => self.content == other.content,
        }
    }
}

impl History {
    /// Returns the published state, if there is one.
    pub(crate) fn last(&self) -> Option<&State> {
        self.states.last().filter(|last| last.until.is_none())
    }

    /// Ends the history: the catalog was removed, or its pointer was lost. The next state need not
    /// follow the last.
    pub(crate) fn end(&mut self, now: u64) {
        if let Some(last) = self.states.last_mut() {
            last.until.get_or_insert(now);
        }
        self.removals += 1;
    }

    /// True if the catalog was ever removed, or its pointer lost.
    pub(crate) const fn has_ended(&self) -> bool {
        self.removals > 0
    }

    /// True if nothing was published at some moment between the two.
    pub(crate) fn was_absent(&self, from: u64, to: u64) -> bool {
        let starts = self
            .states
            .iter()
            .map(|state| state.since)
            .chain([u64::MAX]);
        let ends = [0].into_iter().chain(
            self.states
                .iter()
                .map(|state| state.until.unwrap_or(u64::MAX)),
        );
        ends.zip(starts)
            .any(|(end, start)| end < start && end <= to && from <= start)
    }

    /// Returns the states that were published at some moment between the two.
    pub(crate) fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &State> {
        let overlaps = move |state: &&State| {
            state.since <= to && state.until.is_none_or(|until| from <= until)
        };
        self.states.iter().filter(overlaps)
    }

    /// Adds the pointer as it is now.
    ///
    /// # Errors
    /// The reason why it cannot follow the states before.
    pub(crate) fn append(&mut self, now: u64, side: Side, bytes: &Bytes) -> Result<(), String> {
        if self.last().is_some_and(|last| last.bytes == bytes) {
            return Ok(());
        }
        let next = State::read(now, self.removals, bytes)?;
        let mut since_removal = self
            .states
            .iter()
            .filter(|state| state.removals == self.removals);
        if let Some(other) =
            since_removal.find(|other| other.serial == next.serial && !other.agrees(&next, side))
        {
            return Err(format!(
                "serial {} is {} and {}",
                next.serial, other.content, next.content
            ));
        }
        is_next(self.last(), &next, side)?;
        if let Some(last) = self.states.last_mut() {
            last.until.get_or_insert(now);
        }
        self.states.push(next);
        Ok(())
    }
}

fn is_next(last: Option<&State>, next: &State, side: Side) -> Result<(), String> {
    let serial = next.serial;
    let is_first = serial == 1 && next.publication[3] == serde_json::json!([]);
    match last {
        Some(last) if serial < last.serial => {
            Err(format!("serial {serial} comes after {}", last.serial))
        }
        // A copy may miss what was published between.
        _ if side == Side::Copy => Ok(()),
        None if !is_first => Err(format!(
            "the first serial is {serial}, or it remembers something"
        )),
        Some(last) if !next.follows(last) => {
            Err(format!("serial {serial} does not remember {}", last.serial))
        }
        _ => Ok(()),
    }
}
