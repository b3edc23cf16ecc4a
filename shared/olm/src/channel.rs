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
