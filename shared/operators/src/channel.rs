use std::collections::{BTreeMap, BTreeSet};

use layout::Sha256;

/// One `olm.channel`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Channel {
    /// Its entries by name.
    pub entries: BTreeMap<String, Entry>,
    /// The hash of each line that describes it: one, unless the catalog is broken.
    pub lines: Vec<Sha256>,
}

/// One entry of a channel: a bundle and what it updates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The entry that it updates.
    pub replaces: Option<String>,
    /// Entries that may be jumped over.
    pub skips: BTreeSet<String>,
    /// Versions that may be jumped over, as a range.
    pub skip_range: Option<String>,
}

impl Channel {
    /// The entries that no entry replaces or skips, in byte order: one in a sound channel.
    pub fn heads(&self) -> Vec<&str> {
        let updated: BTreeSet<&str> = self.entries.values().flat_map(Entry::updates).collect();
        let names = self.entries.keys().map(String::as_str);
        names.filter(|name| !updated.contains(name)).collect()
    }
}

impl Entry {
    fn updates(&self) -> impl Iterator<Item = &str> {
        self.replaces.iter().chain(&self.skips).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Entries written as `name<replaced,-skipped`.
    fn channel(entries: &[&str]) -> Channel {
        let entry = |text: &&str| {
            let (name, updates) = text.split_once('<').unwrap_or((text, ""));
            let mut entry = Entry::default();
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
    fn heads_are_what_nothing_updates(#[case] entries: &[&str], #[case] heads: &[&str]) {
        assert_eq!(channel(entries).heads(), heads);
    }
}
