use std::{collections::BTreeSet, time::SystemTime};

use serde::{Deserialize, Serialize};
use serde_with::{As, skip_serializing_none};
use strum::{IntoStaticStr, VariantArray};

use crate::{
    Document, Sha256, ValidationCounts,
    current::{Rfc3339, Rfc3339Millis},
};

/// `status.json`: the last poll of a catalog, for people and monitors. Nothing but the saving of
/// work depends on it.
///
/// A poll that differs from the one before only in its times writes it at most once an hour. So a
/// time in it may be an hour old while polls go on; the metrics have the exact times.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Source as it is configured, without secrets.
    pub source: String,
    /// Time at which the last poll ended, up to an hour too early. Older than the catalog's
    /// interval and an hour: polls have stopped.
    #[serde(with = "As::<Rfc3339>")]
    pub last_poll: SystemTime,
    /// Outcome of the last poll, sync or import.
    pub outcome: Outcome,
    /// Time of the last poll that succeeded, changed or not, up to an hour too early.
    #[serde(default, with = "As::<Option<Rfc3339>>")]
    pub last_success: Option<SystemTime>,
    /// Error of the last poll with its causes, without secrets.
    pub error: Option<String>,
    /// Number of polls that failed since the last success: exact up to 16, after that a lower
    /// bound.
    #[serde(default)]
    pub failures: u64,
    /// Duration of the last poll, in milliseconds.
    pub duration_ms: u64,
    /// Duration of the last poll that pulled an image, in milliseconds: an estimate for the next
    /// pull.
    pub pull_ms: Option<u64>,
    /// Number of bytes received from the source.
    pub bytes_pulled: u64,
    /// Number of bytes written to the store.
    pub bytes_published: u64,
    /// Layers that need not be fetched.
    pub empty_layers: Option<EmptyLayers>,
    /// Pulls that have begun and not ended: they are running, or their process died.
    pub open_pulls: Option<OpenPulls>,
    /// Revision that was pulled and cannot be published.
    pub rejected: Option<RejectedRevision>,
    /// Findings of the validation of the state that is published; `None` if it was not validated.
    pub validation: Option<ValidationCounts>,
    /// Remarks of the last composition, such as required packages that it lacks; `None` for a
    /// catalog that is not composed.
    pub notices: Option<Vec<String>>,
    /// Time at which the next state of a ring is old enough; `None` if none waits for that.
    #[serde(default, with = "As::<Option<Rfc3339>>")]
    pub next_at: Option<SystemTime>,
}

impl Status {
    /// Returns the status of a catalog whose poll, sync or import has ended now. Everything else is
    /// empty or zero.
    pub const fn new(source: String, outcome: Outcome, now: SystemTime) -> Self {
        Self {
            source,
            last_poll: now,
            outcome,
            last_success: if outcome.is_success() {
                Some(now)
            } else {
                None
            },
            error: None,
            failures: 0,
            duration_ms: 0,
            pull_ms: None,
            bytes_pulled: 0,
            bytes_published: 0,
            empty_layers: None,
            open_pulls: None,
            rejected: None,
            validation: None,
            notices: None,
            next_at: None,
        }
    }

    /// Counts a failure after those in `before`, and takes from there what this poll has not found
    /// out.
    #[must_use]
    pub fn after(mut self, before: Option<&Self>) -> Self {
        if !self.outcome.is_success() {
            self.next_at = self.next_at.or(before.and_then(|before| before.next_at));
            self.failures = before.map_or(0, |before| before.failures).saturating_add(1);
            self.last_success = self
                .last_success
                .max(before.and_then(|before| before.last_success));
        }
        let Some(before) = before.cloned() else {
            return self;
        };
        self.pull_ms = self.pull_ms.or(before.pull_ms);
        self.empty_layers = self.empty_layers.or(before.empty_layers);
        self.open_pulls = self.open_pulls.or(before.open_pulls);
        if let (Some(rejected), Some(known)) = (&mut self.rejected, &before.rejected) {
            rejected.go_on_with(known);
        }
        self.rejected = self.rejected.or(before.rejected);
        self.notices = self.notices.or(before.notices);
        if self.outcome != Outcome::Published {
            self.validation = self.validation.or(before.validation);
        }
        self
    }

    /// Forgets the failures of a revision that was published, and the hold in `known`, the status
    /// when the poll began: the source has another revision now. What was recorded since then, a
    /// hold by another poll or its release by a person, stays until the next poll.
    pub fn forget(&mut self, revision: &str, known: Option<&Self>) {
        self.open_pulls
            .take_if(|open| open.inputs.revision == revision);
        let known = known.and_then(Self::held);
        self.rejected.take_if(|rejected| {
            let is_known = known.is_some_and(|(known, _)| {
                known.is_same(rejected) && known.is_released() == rejected.is_released()
            });
            rejected.inputs.revision == revision || is_known
        });
    }

    /// Returns the revision that is held back, and its hold.
    pub fn held(&self) -> Option<(&RejectedRevision, &Hold)> {
        let rejected = self.rejected.as_ref()?;
        Some((rejected, rejected.held.as_ref()?))
    }

    /// Returns the pulls of a revision that began and did not end.
    pub fn open_pulls_of(&self, inputs: &PullInputs) -> Option<&OpenPulls> {
        self.open_pulls
            .as_ref()
            .filter(|open| open.inputs == *inputs)
    }

    /// Counts a pull of a revision that begins now.
    pub fn begin_pull(&mut self, inputs: &PullInputs, now: SystemTime) {
        let before = self.open_pulls_of(inputs);
        self.open_pulls = Some(OpenPulls {
            inputs: inputs.clone(),
            count: before.map_or(0, |open| open.count).saturating_add(1),
            first_begun: before.map_or(now, |open| open.first_begun),
            last_begun: now,
        });
    }

    /// Counts off a pull of a revision, which has ended.
    pub fn end_pull(&mut self, inputs: &PullInputs) {
        if let Some(open) = &mut self.open_pulls
            && open.inputs == *inputs
        {
            open.count = open.count.saturating_sub(1);
        }
        self.open_pulls.take_if(|open| open.count == 0);
    }

    /// Returns true if the first poll of the catalog has not ended: it is running, or its process
    /// died.
    pub const fn is_first_poll(&self) -> bool {
        self.failures == 0 && !self.outcome.is_success()
    }
}

/// Revision of a source, and the program and settings that decide the result of pulling it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullInputs {
    /// Revision of the source, such as a digest.
    pub revision: String,
    /// Version of the program, and of its rendering after a `/`.
    pub program: String,
    /// Hash of the source, the limits, the platform and the policy.
    pub settings: Sha256,
}

/// Pulls of one revision that have begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenPulls {
    /// Revision that is pulled.
    #[serde(flatten)]
    pub inputs: PullInputs,
    /// Number of pulls. Each counts itself off at its end.
    pub count: u32,
    /// Time at which the first of them began.
    #[serde(with = "As::<Rfc3339Millis>")]
    pub first_begun: SystemTime,
    /// Time at which the last of them began.
    #[serde(with = "As::<Rfc3339Millis>")]
    pub last_begun: SystemTime,
}

/// Revision that cannot be published. It is not pulled again while the inputs and the published
/// state are the same, and its hold is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedRevision {
    /// Revision that was pulled.
    #[serde(flatten)]
    pub inputs: PullInputs,
    /// Snapshot that was published then; `None` if there was none. A suspicious result is one
    /// compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Sha256>,
    /// Outcome of the poll, failed or refused.
    pub outcome: Outcome,
    /// Kind of the error, for programs.
    #[serde(default)]
    pub kind: RejectionKind,
    /// Hold of a revision that looks like an accident; `None` for other errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Hold>,
    /// Error of the poll with its causes, without secrets.
    pub error: String,
}

impl RejectedRevision {
    /// Returns true for the same revision over the same published state.
    fn is_same(&self, other: &Self) -> bool {
        self.inputs.revision == other.inputs.revision && self.base == other.base
    }

    /// Returns true if a person has let the revision through.
    fn is_released(&self) -> bool {
        self.held.as_ref().is_some_and(|hold| hold.released)
    }

    /// Goes on with the hold of `known`, which is over the same published state. The poll that ends
    /// now may not have read it: a person released the revision meanwhile, or another poll found
    /// something to hold before.
    fn go_on_with(&mut self, known: &Self) {
        let is_same = self.is_same(known);
        let (Some(hold), Some(known_hold)) = (&mut self.held, &known.held) else {
            return;
        };
        if self.base != known.base {
            return;
        }
        hold.released |= known_hold.released && is_same;
        if let Ok(earlier) = hold.since.duration_since(known_hold.since) {
            hold.since = known_hold.since;
            hold.until = hold.until.map(|until| until - earlier);
        }
    }
}

/// Hold of new content over one published state. It ends with the first poll that succeeds. If the
/// document is lost, it begins anew.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// Time since which each poll has found content that is held, of this revision or of another.
    #[serde(with = "As::<Rfc3339>")]
    pub since: SystemTime,
    /// Time from which the content is published all the same; `None` if only a person decides.
    #[serde(default, with = "As::<Option<Rfc3339>>")]
    pub until: Option<SystemTime>,
    /// True if a person has let the revision through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}

impl Hold {
    /// Returns true if the revision may be published.
    pub fn is_over(&self, now: SystemTime) -> bool {
        self.released || self.until.is_some_and(|until| until <= now)
    }
}

/// Kind of the error of a [`RejectedRevision`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RejectionKind {
    /// The image does not have the label with the folder of a catalog.
    NoLabel,
    /// Any other error, which the next pull of the same revision would meet again.
    #[default]
    Other,
}

/// Outcome of a poll, rollback, sync or import.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The digest is known: nothing was pulled.
    Unchanged,
    /// A new digest with the same content: only the source digest was changed.
    SourceDigestUpdated,
    /// New content was published, under a new serial.
    Published,
    /// The result looks like an accident: nothing was published, the old state stays served.
    Refused,
    /// Something went wrong: the old state stays served.
    Failed,
}

impl Outcome {
    /// All outcomes, for metrics that list each of them.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    /// True if the mirror is up to date afterwards.
    pub const fn is_success(self) -> bool {
        matches!(
            self,
            Self::Unchanged | Self::SourceDigestUpdated | Self::Published
        )
    }

    /// Returns the word for tables, logs and metrics.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Document for Status {
    const NAME: &'static str = "status.json";
}

/// Layers of the catalog's image that are known to hold no file of the FBC, so that they are not
/// fetched again. They may hold files below another root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyLayers {
    /// FBC root that the layers were searched for, without a leading slash, such as `configs`.
    pub root: String,
    /// Digests of the compressed layers, `sha256:<hex>`.
    pub empty: BTreeSet<String>,
}

impl EmptyLayers {
    /// Returns the layers that need not be fetched for files below `root`.
    pub fn below(&self, root: &str) -> &BTreeSet<String> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        if self.root == root {
            &self.empty
        } else {
            &NONE
        }
    }
}
