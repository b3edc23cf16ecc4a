//! The upgrade graph of a part of a channel.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use olm::{Channel, ChannelGraph, GraphEntry, GraphFault};

use crate::{
    SelectError,
    error::{ChannelFault, listed},
};

/// Entries of a channel that are kept, by name.
pub(crate) type KeptEntries<'a> = BTreeSet<&'a str>;

/// Checks the kept entries by the rules of operator-registry v1.73.0 (`alpha/model`, `Channel.Validate`): one head, no cycle,
/// no stranded entry. In addition the head must reach each entry, which that code does not ask of entries that skip each other.
fn check(channel: &Channel, kept: &KeptEntries<'_>) -> Result<(), ChannelFault> {
    let entries = channel.graph_entries().filter(|entry| kept.contains(entry.name));
    let entries: Vec<GraphEntry<'_>> = entries.collect();
    let graph = ChannelGraph::new(&entries).map_err(|fault| match fault {
        GraphFault::NoHead => ChannelFault::NoHead,
        GraphFault::Heads(heads) => ChannelFault::Heads(owned(heads)),
        GraphFault::Cycle { replaces, .. } => ChannelFault::Cycle(replaces.to_owned()),
    })?;
    let reached = reached(channel, kept, graph.head());
    let stranded = kept.iter().copied();
    let stranded: Vec<&str> = stranded
        .filter(|name| !reached.contains(name) || !graph.is_connected(name))
        .collect();
    if stranded.is_empty() {
        Ok(())
    } else {
        Err(ChannelFault::Stranded(owned(stranded)))
    }
}

/// Returns the kept entries that the head updates, directly or through others. Each entry is visited once.
fn reached<'a>(channel: &'a Channel, kept: &KeptEntries<'a>, head: &'a str) -> HashSet<&'a str> {
    let mut reached = HashSet::from([head]);
    let mut open = vec![head];
    while let Some(name) = open.pop() {
        let Some(entry) = channel.entries.get(name) else {
            continue;
        };
        for next in entry.replaces.iter().chain(&entry.skips).map(String::as_str) {
            if kept.contains(next) && reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

/// Words of the error for a channel that [`check_part`] refuses.
pub(crate) struct BrokenWords {
    /// Part of the composition that breaks the channel.
    pub(crate) selection: String,
    /// Advice to keep the entries that connect the others; their names follow.
    pub(crate) connect: &'static str,
    /// Advice if no entry connects them.
    pub(crate) otherwise: &'static str,
}

/// Checks the kept entries of a channel as [`check`] does. The error names those of `old` that would connect them.
pub(crate) fn check_part(
    place: String,
    channel: &Channel,
    old: Option<&Channel>,
    kept: &KeptEntries<'_>,
    words: impl FnOnce() -> BrokenWords,
) -> Result<(), SelectError> {
    check(channel, kept).map_err(|fault| broken(place, old, kept, fault, words()))
}

/// Returns the error of a channel that is broken, or that a selection breaks.
pub(crate) fn broken(
    place: String,
    old: Option<&Channel>,
    kept: &KeptEntries<'_>,
    fault: ChannelFault,
    words: BrokenWords,
) -> SelectError {
    SelectError::Broken {
        place,
        selection: words.selection,
        advice: match old.and_then(|channel| connecting(channel, kept, &fault)) {
            Some(missing) => format!("{}: {missing}", words.connect),
            None => words.otherwise.to_owned(),
        },
        fault,
    }
}

/// Lists the entries that are not kept and update those that the fault names. With them the channel may be valid.
fn connecting(channel: &Channel, kept: &KeptEntries<'_>, fault: &ChannelFault) -> Option<String> {
    let loose = match fault {
        ChannelFault::Heads(names) | ChannelFault::Stranded(names) => names.as_slice(),
        ChannelFault::NoHead | ChannelFault::Cycle(_) => &[],
    };
    let loose: HashSet<&str> = loose.iter().map(String::as_str).collect();
    let updates_loose = |entry: &olm::ChannelEntry| {
        let mut updated = entry.replaces.iter().chain(&entry.skips);
        updated.any(|name| loose.contains(name.as_str()))
    };
    let missing = channel.entries.iter().filter(|(name, _)| !kept.contains(name.as_str()));
    let missing = missing
        .filter(|(_, entry)| updates_loose(entry))
        .map(|(name, _)| name.clone());
    let missing: Vec<String> = missing.collect();
    (!missing.is_empty()).then(|| listed(&missing))
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Part of the channels of a package that grows by one bundle at a time. The work grows with the number of entries and edges,
/// while [`check`] would read all of a channel again for each bundle.
#[derive(Debug)]
pub(crate) struct GrowingChannels {
    entries: Vec<GrowingEntry>,
    channels: Vec<GrowingChannel>,
    /// Entries of each bundle: at most one for a channel.
    places: HashMap<String, Vec<usize>>,
    /// Number of channels that are not valid.
    invalid: usize,
}

/// Entry of a channel, with the numbers of the entries that it updates.
#[derive(Debug, Default)]
struct GrowingEntry {
    channel: usize,
    replaces: Option<usize>,
    skips: Vec<usize>,
    is_kept: bool,
    /// Number of kept entries that skip it.
    skipped_by: usize,
    /// Number of kept entries that replace it.
    replaced_by: usize,
    /// Number of those of them that no kept entry skips. An update leads through them.
    reached_by: usize,
}

#[derive(Debug, Default)]
struct GrowingChannel {
    /// Number of entries.
    size: usize,
    kept: usize,
    heads: usize,
    /// Number of kept entries that are replaced, but not on the way from the head.
    stranded: usize,
    /// True if entries update each other in a circle.
    is_circular: bool,
}

impl GrowingChannel {
    const fn is_valid(&self) -> bool {
        let is_line = self.heads == 1 && self.stranded == 0;
        // A circle can lie below the head. Only a single entry is surely none.
        let may_be_circle = self.is_circular && self.kept > 1;
        self.kept == 0 || self.kept == self.size || (is_line && !may_be_circle)
    }
}

impl GrowingEntry {
    const fn is_head(&self) -> bool {
        self.is_kept && self.skipped_by == 0 && self.replaced_by == 0
    }

    const fn is_stranded(&self) -> bool {
        self.is_kept && self.skipped_by == 0 && self.replaced_by > 0 && self.reached_by == 0
    }
}

impl GrowingChannels {
    pub(crate) fn new(channels: &BTreeMap<String, Channel>) -> Self {
        let mut growing = Self {
            entries: Vec::new(),
            channels: Vec::new(),
            places: HashMap::new(),
            invalid: 0,
        };
        for (number, channel) in channels.values().enumerate() {
            let first = growing.entries.len();
            let numbers: HashMap<&str, usize> = channel.entries.keys().map(String::as_str).zip(first..).collect();
            for (name, entry) in &channel.entries {
                growing
                    .places
                    .entry(name.clone())
                    .or_default()
                    .push(growing.entries.len());
                let number_of = |name: &String| numbers.get(name.as_str()).copied();
                growing.entries.push(GrowingEntry {
                    channel: number,
                    replaces: entry.replaces.as_ref().and_then(number_of),
                    skips: entry.skips.iter().filter_map(number_of).collect(),
                    ..GrowingEntry::default()
                });
            }
            growing.channels.push(GrowingChannel {
                size: channel.entries.len(),
                is_circular: growing.is_circular(first),
                ..GrowingChannel::default()
            });
        }
        growing
    }

    /// Returns true if the entries from this number on update each other in a circle.
    fn is_circular(&self, first: usize) -> bool {
        let entries = &self.entries[first..];
        let updates = |at: usize| {
            entries[at]
                .replaces
                .iter()
                .chain(&entries[at].skips)
                .map(|next| next - first)
        };
        let mut updated_by = vec![0_usize; entries.len()];
        (0..entries.len())
            .flat_map(updates)
            .for_each(|next| updated_by[next] += 1);
        let mut open: Vec<usize> = (0..entries.len()).filter(|at| updated_by[*at] == 0).collect();
        let mut seen = 0;
        while let Some(at) = open.pop() {
            seen += 1;
            for next in updates(at) {
                updated_by[next] -= 1;
                if updated_by[next] == 0 {
                    open.push(next);
                }
            }
        }
        seen < entries.len()
    }

    /// Keeps the entries of one more bundle.
    pub(crate) fn keep(&mut self, bundle: &str) {
        for at in self.places.get(bundle).cloned().unwrap_or_default() {
            if self.entries[at].is_kept {
                continue;
            }
            let channel = self.entries[at].channel;
            self.invalid -= usize::from(!self.channels[channel].is_valid());
            self.channels[channel].kept += 1;
            self.change(at, |entry| entry.is_kept = true);
            if let Some(next) = self.entries[at].replaces {
                let reaches = usize::from(self.entries[at].skipped_by == 0);
                self.change(next, |entry| {
                    entry.replaced_by += 1;
                    entry.reached_by += reaches;
                });
            }
            for next in self.entries[at].skips.clone() {
                let is_first = self.entries[next].skipped_by == 0;
                self.change(next, |entry| entry.skipped_by += 1);
                let behind = self.entries[next].replaces;
                if let Some(behind) = behind.filter(|_| is_first && self.entries[next].is_kept) {
                    self.change(behind, |entry| entry.reached_by -= 1);
                }
            }
            self.invalid += usize::from(!self.channels[channel].is_valid());
        }
    }

    /// Changes one entry, and counts it anew.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut GrowingEntry)) {
        let entry = &mut self.entries[at];
        let channel = &mut self.channels[entry.channel];
        channel.heads -= usize::from(entry.is_head());
        channel.stranded -= usize::from(entry.is_stranded());
        change(entry);
        channel.heads += usize::from(entry.is_head());
        channel.stranded += usize::from(entry.is_stranded());
    }

    /// Returns true if each channel is valid with the kept entries alone, or as its catalog has it.
    pub(crate) const fn are_valid(&self) -> bool {
        self.invalid == 0
    }

    /// Returns true for each channel, in byte order, of which entries are kept.
    pub(crate) fn has_kept(&self) -> impl Iterator<Item = bool> {
        self.channels.iter().map(|channel| channel.kept > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn channel(entries: &[(Option<usize>, BTreeSet<usize>)], is_circular: bool) -> Channel {
        let entries = entries.iter().enumerate().map(|(at, (replaces, skips))| {
            // Without circles each entry updates only those before it.
            let is_linked = |other: &usize| is_circular || *other < at;
            let entry = olm::ChannelEntry {
                replaces: replaces.filter(is_linked).map(|at| at.to_string()),
                skips: skips
                    .iter()
                    .copied()
                    .filter(is_linked)
                    .map(|at| at.to_string())
                    .collect(),
                skip_range: None,
            };
            (at.to_string(), entry)
        });
        Channel {
            entries: entries.collect(),
            lines: Vec::new(),
        }
    }

    proptest! {
        #[test]
        fn growing_channels_are_as_valid_as_their_parts(
            channels in vec(
                vec((proptest::option::of(0..8_usize), proptest::collection::btree_set(0..8_usize, 0..3)), 1..9),
                1..3,
            ),
            order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let channels: BTreeMap<String, Channel> =
                channels.iter().enumerate().map(|(at, entries)| (at.to_string(), channel(entries, false))).collect();
            let mut growing = GrowingChannels::new(&channels);
            let mut names = BTreeSet::new();
            for at in order {
                names.insert(at.to_string());
                growing.keep(&at.to_string());
                let is_valid = channels.values().all(|channel| {
                    let kept = channel.entries.keys().map(String::as_str);
                    let kept: KeptEntries<'_> = kept.filter(|name| names.contains(*name)).collect();
                    kept.is_empty() || kept.len() == channel.entries.len() || check(channel, &kept).is_ok()
                });
                prop_assert_eq!(growing.are_valid(), is_valid, "{:?}", names);
            }
        }

        #[test]
        fn growing_channels_with_a_circle_are_never_valid_where_their_parts_are_not(
            entries in vec((proptest::option::of(0..6_usize), proptest::collection::btree_set(0..6_usize, 0..3)), 1..7),
            order in Just((0..6_usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let channel = channel(&entries, true);
            let mut growing = GrowingChannels::new(&BTreeMap::from([("c".to_owned(), channel.clone())]));
            let mut names = BTreeSet::new();
            for at in order {
                names.insert(at.to_string());
                growing.keep(&at.to_string());
                let kept = channel.entries.keys().map(String::as_str);
                let kept: KeptEntries<'_> = kept.filter(|name| names.contains(*name)).collect();
                let is_part = !kept.is_empty() && kept.len() < channel.entries.len();
                prop_assert!(!growing.are_valid() || !is_part || check(&channel, &kept).is_ok(), "{:?}", names);
            }
        }
    }
}
