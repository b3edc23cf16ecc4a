//! `static.json`: the files of a tree, so that the next run knows what to write and what to delete.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use crate::TreeError;

/// Path of the list in the tree.
pub(crate) const INDEX: &str = "static.json";

/// Time for which a file stays after nothing names it any more: as long as clients may follow an old pointer.
const STAYS_FOR: Duration = Duration::from_secs(2 * 3600);

/// Files of a tree by their paths.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TreeIndex {
    pub(crate) files: BTreeMap<String, WrittenFile>,
}

/// File as it was written.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WrittenFile {
    /// Entity tag of the answer; empty for a file that a run was about to write.
    pub(crate) tag: String,
    pub(crate) size: u64,
    /// Seconds since 1970 at which nothing named it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unnamed_since: Option<u64>,
}

impl TreeIndex {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, TreeError> {
        serde_json::from_slice(bytes).map_err(TreeError::Index)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers become JSON")
    }
}

impl WrittenFile {
    pub(crate) fn new(tag: &str, size: u64) -> Self {
        Self {
            tag: tag.to_owned(),
            size,
            unnamed_since: None,
        }
    }

    /// Marks a file that nothing names. Returns true if it is to be deleted. A time in the future counts as now.
    pub(crate) fn is_due(&mut self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let since = self.unnamed_since.filter(|since| *since <= now).unwrap_or(now);
        self.unnamed_since = Some(since);
        now - since >= STAYS_FOR.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_due_counts_from_first_run_without_name_whatever_the_clock_does() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let mut file = WrittenFile::default();
        assert!(!file.is_due(at(10_000)));
        assert!(!file.is_due(at(17_199)));
        assert!(file.is_due(at(17_200)));
        // The clock went back: the time counts anew.
        assert!(!file.is_due(at(5_000)));
        assert_eq!(file.unnamed_since, Some(5_000));
        assert!(file.is_due(at(12_200)));
    }
}
