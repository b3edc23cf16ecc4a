use std::{collections::BTreeSet, time::SystemTime};

use serde::{Deserialize, Serialize};

use crate::{Document, current::timestamp};

/// `status.json`: the last poll of a catalog. For people and monitors; nothing depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The configured source.
    pub source: String,
    /// When the last poll ended.
    #[serde(with = "timestamp")]
    pub last_poll: SystemTime,
    /// How it ended.
    pub outcome: Outcome,
    /// When a poll last succeeded, changed or not.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "timestamp::option")]
    pub last_success: Option<SystemTime>,
    /// What went wrong, with its causes, secrets left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many polls have failed since the last success.
    #[serde(default)]
    pub failures: u64,
    /// How long the poll took, in milliseconds.
    pub duration_ms: u64,
    /// How long the last poll took that pulled the image, in milliseconds: what the next one may need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_ms: Option<u64>,
    /// Bytes that came over the wire.
    pub bytes_pulled: u64,
    /// Bytes that were written to the store.
    pub bytes_published: u64,
}

/// How a poll ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The digest is known: nothing was pulled.
    Unchanged,
    /// A new digest with the same content: only the source digest was changed.
    Retagged,
    /// New content was published.
    Published,
    /// The result looks like an accident: nothing was published, the old state stays served.
    Refused,
    /// Something went wrong: the old state stays served.
    Failed,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 5] = [
        Self::Unchanged,
        Self::Retagged,
        Self::Published,
        Self::Refused,
        Self::Failed,
    ];

    /// Whether the mirror is up to date afterwards.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Unchanged | Self::Retagged | Self::Published)
    }

    /// The word for tables, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Retagged => "retagged",
            Self::Published => "published",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

impl Document for Status {
    const KIND: &'static str = "status.json";
}

/// `layers.json`: layers of the catalog's image that are known to hold nothing of the FBC, by digest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layers {
    /// The FBC root that they were searched for.
    pub root: String,
    /// Their digests.
    pub empty: BTreeSet<String>,
}

impl Document for Layers {
    const KIND: &'static str = "layers.json";
}
