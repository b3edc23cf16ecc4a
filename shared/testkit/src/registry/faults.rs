//! What goes wrong, and what was asked.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// HEAD of a manifest.
    Head,
    /// GET of a manifest.
    Manifest,
    /// GET of a blob.
    Blob,
    /// The token service.
    Token,
    /// Anything else.
    Other,
}

/// How a request goes wrong.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status, with an optional `Retry-After`.
    Status(u16, Option<String>),
    /// The connection breaks after so many bytes of the body.
    Cut(usize),
    /// The answer takes so much longer.
    Delay(Duration),
    /// The digest header says this.
    Digest(String),
    /// A redirect to this URL.
    Redirect(String),
    /// This body instead, with status 200.
    Body(String),
    /// The right answer, with this header in the place of its own.
    Header(&'static str, String),
    /// This answer instead: status, headers, body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// None.
    Pass,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it is for.
    pub kind: Kind,
    /// Its path.
    pub path: String,
    /// Its query.
    pub query: String,
    /// Its `Range`.
    pub range: Option<String>,
    /// Its `Authorization`.
    pub authorization: Option<String>,
    /// Its `Host`.
    pub host: String,
    /// Its `Cookie`.
    pub cookie: Option<String>,
    /// Its body.
    pub body: String,
}

#[derive(Default)]
pub(crate) struct Script {
    faults: BTreeMap<Kind, VecDeque<Fault>>,
    delays: BTreeMap<Kind, Duration>,
    running: BTreeMap<Kind, (usize, usize)>,
    pub(crate) requests: Vec<Request>,
}

impl Script {
    pub(crate) fn push(&mut self, kind: Kind, fault: Fault) {
        self.faults.entry(kind).or_default().push_back(fault);
    }

    pub(crate) fn next(&mut self, kind: Kind) -> Option<Fault> {
        self.faults.get_mut(&kind)?.pop_front()
    }

    pub(crate) fn delay(&mut self, kind: Kind, delay: Duration) {
        self.delays.insert(kind, delay);
    }

    pub(crate) fn delay_of(&self, kind: Kind) -> Duration {
        self.delays.get(&kind).copied().unwrap_or_default()
    }

    pub(crate) fn begin(&mut self, kind: Kind) {
        let (now, most) = self.running.entry(kind).or_default();
        *now += 1;
        *most = (*most).max(*now);
    }

    pub(crate) fn end(&mut self, kind: Kind) {
        if let Some((now, _)) = self.running.get_mut(&kind) {
            *now -= 1;
        }
    }

    pub(crate) fn most_at_once(&self, kind: Kind) -> usize {
        self.running.get(&kind).map_or(0, |(_, most)| *most)
    }
}
