use std::collections::{BTreeMap, BTreeSet};

use model::Sha256;

use crate::graph::{GraphEntry, heads};

/// Channel of a package: an `olm.channel`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Channel {
    /// Entries of the channel by bundle name.
    pub entries: BTreeMap<String, ChannelEntry>,
    /// Hash of each line that describes the channel: one, unless the catalog is broken.
    pub lines: Vec<Sha256>,
}

/// Entry of a channel: a bundle and the entries that it updates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelEntry {
    /// Name of the entry that it replaces.
    pub replaces: Option<String>,
    /// Names of entries that an update may skip.
    pub skips: BTreeSet<String>,
    /// Range of versions that an update may skip.
    pub skip_range: Option<String>,
}

impl ChannelEntry {
    /// Returns the names of the entries that it replaces or skips.
    pub fn updated(&self) -> impl Iterator<Item = &str> {
        self.replaces.iter().chain(&self.skips).map(String::as_str)
    }
}

impl Channel {
    /// Returns the entries that no entry replaces or skips, in byte order: one in a valid channel, none or several in a
    /// broken one.
    // The definition is that of operator-registry (`alpha/model`, `Channel.Head`), where more than one is an error.
    pub fn heads(&self) -> Vec<&str> {
        heads(&self.graph_entries().collect::<Vec<_>>())
    }

    /// Returns the entries as nodes of the upgrade graph, in byte order.
    pub fn graph_entries(&self) -> impl Iterator<Item = GraphEntry<'_>> {
        self.entries.iter().map(|(name, entry)| GraphEntry {
            name,
            replaces: entry.replaces.as_deref(),
            skips: entry.skips.iter().map(String::as_str).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Builds a channel from entries written as `name<replaced,-skipped`.
    fn channel(entries: &[&str]) -> Channel {
        let entry = |text: &&str| {
            let (name, updates) = text.split_once('<').unwrap_or((text, ""));
            let mut entry = ChannelEntry::default();
            for update in updates.split(',').filter(|update| !update.is_empty()) {
                match update.strip_prefix('-') {
                    Some(skipped) => drop(entry.skips.insert(skipped.to_owned())),
                    None => entry.replaces = Some(update.to_owned()),
                }
            }
            (name.to_owned(), entry)
        };
        Channel {
            entries: entries.iter().map(entry).collect(),
            lines: Vec::new(),
        }
    }

    #[rstest]
    #[case::none(&[], &[])]
    #[case::alone(&["a"], &["a"])]
    #[case::chain(&["a", "b<a", "c<b"], &["c"])]
    #[case::replaces_what_is_not_there(&["b<a"], &["b"])]
    #[case::skipped(&["a", "b", "c<a,-b"], &["c"])]
    #[case::two_heads(&["a", "b<a", "c<a"], &["b", "c"])]
    #[case::a_loop_has_none(&["a<b", "b<a"], &[])]
    #[case::itself(&["a<a"], &[])]
    fn heads_are_entries_that_no_entry_updates(#[case] entries: &[&str], #[case] heads: &[&str]) {
        assert_eq!(channel(entries).heads(), heads);
    }
}
