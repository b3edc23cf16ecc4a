use std::{collections::BTreeSet, time::SystemTime};

use serde::{Deserialize, Serialize};

use crate::{Document, Sha256, ValidationCounts, current::timestamp};

/// `status.json`: the last poll of a catalog, for people and monitors. Nothing but the saving of work depends on it.
///
/// A poll that differs from the one before only in its times writes it at most once an hour. So a time in it may be an hour
/// old while polls go on; the metrics have the exact times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Source as it is configured, without secrets.
    pub source: String,
    /// Time at which the last poll ended, up to an hour too early. Older than the catalog's interval and an hour: polls
    /// have stopped.
    #[serde(with = "timestamp")]
    pub last_poll: SystemTime,
    /// Outcome of the last poll, sync or import.
    pub outcome: Outcome,
    /// Time of the last poll that succeeded, changed or not, up to an hour too early.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "timestamp::option")]
    pub last_success: Option<SystemTime>,
    /// Error of the last poll with its causes, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of polls that failed since the last success: exact up to 16, after that a lower bound.
    #[serde(default)]
    pub failures: u64,
    /// Duration of the last poll, in milliseconds.
    pub duration_ms: u64,
    /// Duration of the last poll that pulled an image, in milliseconds: an estimate for the next pull.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_ms: Option<u64>,
    /// Number of bytes received from the source.
    pub bytes_pulled: u64,
    /// Number of bytes written to the store.
    pub bytes_published: u64,
    /// Layers that need not be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_layers: Option<EmptyLayers>,
    /// Pulls that have begun and not ended: they are running, or their process died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_pulls: Option<OpenPulls>,
    /// Revision that was pulled and cannot be published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<RejectedRevision>,
    /// Findings of the validation of the state that is published; `None` if it was not validated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<ValidationCounts>,
}

impl Status {
    /// Returns true if the first poll of the catalog has not ended: it is running, or its process died.
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
    /// Random identifiers of the pulls. Each pull removes its own at its end.
    pub pulls: BTreeSet<String>,
}

/// Revision that cannot be published. It is not pulled again while the inputs and the published state are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedRevision {
    /// Revision that was pulled.
    #[serde(flatten)]
    pub inputs: PullInputs,
    /// Snapshot that was published then; `None` if there was none. A suspicious result is one compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Sha256>,
    /// Outcome of the poll, failed or refused.
    pub outcome: Outcome,
    /// Kind of the error, for programs.
    #[serde(default)]
    pub kind: RejectionKind,
    /// Error of the poll with its causes, without secrets.
    pub error: String,
}

/// Kind of the error of a [`RejectedRevision`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RejectionKind {
    /// The image does not have the label with the folder of a catalog.
    NoLabel,
    /// Any other.
    #[default]
    Other,
}

/// Outcome of a poll, rollback, sync or import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    pub const ALL: [Self; 5] = [
        Self::Unchanged,
        Self::SourceDigestUpdated,
        Self::Published,
        Self::Refused,
        Self::Failed,
    ];

    /// True if the mirror is up to date afterwards.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Unchanged | Self::SourceDigestUpdated | Self::Published)
    }

    /// Returns the word for tables, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::SourceDigestUpdated => "source_digest_updated",
            Self::Published => "published",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

impl Document for Status {
    const NAME: &'static str = "status.json";
}

/// Layers of the catalog's image that are known to hold no file of the FBC, so that they are not fetched again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyLayers {
    /// FBC root that the layers were searched for, such as `/configs`.
    pub root: String,
    /// Digests of the compressed layers, `sha256:<hex>`.
    pub empty: BTreeSet<String>,
}
