use bytes::Bytes;
use layout::Sha256;
use serde_json::Value;

use crate::{fault::Side, snapshot::sha256};

/// How many earlier publications a pointer remembers.
const REMEMBERED: usize = 16;

/// A pointer as it was at some time.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) since: u64,
    /// When it was replaced or removed.
    pub(crate) until: Option<u64>,
    /// How often the catalog was removed, or its pointer lost, before.
    life: usize,
    pub(crate) bytes: Bytes,
    pub(crate) serial: u64,
    pub(crate) content: Sha256,
    /// Of the Snapshot's own bytes.
    pub(crate) snapshot: Sha256,
    /// What must not change as long as the serial does not: content, Snapshot, date and history.
    pub(crate) publication: [Value; 4],
}

/// All states of one catalog in one store, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) states: Vec<State>,
    life: usize,
}

impl State {
    fn read(since: u64, life: usize, bytes: &Bytes) -> Result<Self, String> {
        let document: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON: {error}"))?;
        let fields = ["contentHash", "snapshot", "publishedAt", "previous"];
        Ok(Self {
            since,
            until: None,
            life,
            bytes: bytes.clone(),
            serial: document["serial"].as_u64().ok_or("it has no serial")?,
            content: sha256(&document["contentHash"])?,
            snapshot: sha256(&document["snapshot"]["sha256"])?,
            publication: fields.map(|field| document[field].clone()),
        })
    }

    /// Whether it is the same publication, whose source was seen anew, or the one after `last`.
    fn follows(&self, last: &Self) -> bool {
        self.serial == last.serial || self.serial == last.serial + 1 && self.publication[3] == last.as_previous()
    }

    /// What the next publication has to remember of this one and of those before.
    fn as_previous(&self) -> Value {
        let [content, reference, published, previous] = &self.publication;
        let this = serde_json::json!({
            "serial": self.serial,
            "contentHash": content,
            "publishedAt": published,
            "snapshot": reference["sha256"],
        });
        let earlier = previous.as_array().into_iter().flatten().cloned();
        std::iter::once(this).chain(earlier).take(REMEMBERED).collect()
    }

    /// Whether the two, of one serial, may both have been published. To a copy a catalog that was removed and polled
    /// again may look like the one before, as long as the contents are the same.
    fn agrees(&self, other: &Self, side: Side) -> bool {
        match side {
            Side::Origin => self.publication == other.publication,
            Side::Copy => self.content == other.content,
        }
    }
}

impl History {
    /// What is published, if something is.
    pub(crate) fn last(&self) -> Option<&State> {
        self.states.last().filter(|last| last.until.is_none())
    }

    /// The catalog was removed, or nothing can tell any more what it was: what comes is not bound by what was.
    pub(crate) fn end(&mut self, now: u64) {
        if let Some(last) = self.states.last_mut() {
            last.until.get_or_insert(now);
        }
        self.life += 1;
    }

    /// Whether it ever ended.
    pub(crate) const fn has_ended(&self) -> bool {
        self.life > 0
    }

    /// Whether there was none at some moment between the two.
    pub(crate) fn was_absent(&self, from: u64, to: u64) -> bool {
        let starts = self.states.iter().map(|state| state.since).chain([u64::MAX]);
        let ends = [0]
            .into_iter()
            .chain(self.states.iter().map(|state| state.until.unwrap_or(u64::MAX)));
        ends.zip(starts)
            .any(|(end, start)| end < start && end <= to && from <= start)
    }

    /// Those that were published at some moment between the two.
    pub(crate) fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &State> {
        let overlaps = move |state: &&State| state.since <= to && state.until.is_none_or(|until| from <= until);
        self.states.iter().filter(overlaps)
    }

    /// Takes in the pointer as it is now.
    ///
    /// # Errors
    /// Why it cannot come after those before.
    pub(crate) fn append(&mut self, now: u64, side: Side, bytes: &Bytes) -> Result<(), String> {
        if self.last().is_some_and(|last| last.bytes == bytes) {
            return Ok(());
        }
        let next = State::read(now, self.life, bytes)?;
        let mut of_this_life = self.states.iter().filter(|state| state.life == self.life);
        if let Some(other) = of_this_life.find(|other| other.serial == next.serial && !other.agrees(&next, side)) {
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
    match last {
        Some(last) if next.serial < last.serial => {
            Err(format!("the serial goes back from {} to {}", last.serial, next.serial))
        }
        None if side == Side::Origin && (next.serial != 1 || next.publication[3] != serde_json::json!([])) => Err(
            format!("the first serial is {}, or it remembers something", next.serial),
        ),
        // A copy may miss what was published between.
        Some(last) if side == Side::Origin && !next.follows(last) => Err(format!(
            "serial {} does not remember serial {}",
            next.serial, last.serial
        )),
        _ => Ok(()),
    }
}
