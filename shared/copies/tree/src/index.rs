//! `static.json`: the files of a tree, so that the next run knows what to write and what to delete.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Path of the list in the tree.
pub(crate) const INDEX: &str = "static.json";

/// Time for which a file stays after nothing names it any more: as long as clients may follow an
/// old pointer.
const STAYS_FOR: Duration = Duration::from_secs(2 * 3600);

/// Files of a tree by their paths.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TreeIndex {
    /// True while a run changes files. After one that was killed, names may have other contents
    /// than those of their tags.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_unfinished: bool,
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
    /// Forgets the tags of names after a killed run. A file that is named by its hash has no other
    /// content.
    pub(crate) fn forget_unfinished(&mut self) {
        if !std::mem::take(&mut self.is_unfinished) {
            return;
        }
        for (path, file) in &mut self.files {
            if path.starts_with("catalogs/") || !path.contains("/sha256") {
                file.tag.clear();
            }
        }
    }
}

impl WrittenFile {
    /// Marks a file that nothing names. Returns true if it is to be deleted. A time in the future
    /// counts as now.
    pub(crate) fn is_due(&mut self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let since = self
            .unnamed_since
            .filter(|since| *since <= now)
            .unwrap_or(now);
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
