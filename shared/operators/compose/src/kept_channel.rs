//! The upgrade graph of a part of a channel.

use std::collections::{BTreeSet, HashSet};

use olm::{Channel, ChannelGraph, GraphFault};

use crate::error::listed;

/// Entries of a channel that are kept, by name.
pub(crate) type KeptEntries<'a> = BTreeSet<&'a str>;

/// Rule of OLM that a channel violates.
pub(crate) struct ChannelFault<'a> {
    text: String,
    /// Entries that lack a way from the head.
    loose: Vec<&'a str>,
}

impl<'a> From<GraphFault<'a>> for ChannelFault<'a> {
    fn from(fault: GraphFault<'a>) -> Self {
        match fault {
            GraphFault::NoHead => Self {
                text: "has no head: its entries replace or skip each other in a cycle".to_owned(),
                loose: Vec::new(),
            },
            GraphFault::Heads(heads) => Self {
                text: format!("has several heads: {}", listed(&heads)),
                loose: heads,
            },
            GraphFault::Cycle { replaces, .. } => Self {
                text: format!("has a cycle of replaces through {replaces}"),
                loose: Vec::new(),
            },
        }
    }
}

/// Checks the kept entries by the rules of operator-registry v1.73.0 (`alpha/model`,
/// `Channel.Validate`): one head, no cycle, no stranded entry. In addition the head must reach each
/// entry, which that code does not ask of entries that skip each other.
pub(crate) fn check<'a>(
    channel: &'a Channel,
    kept: &KeptEntries<'a>,
) -> Result<(), ChannelFault<'a>> {
    let mut entries = Vec::new();
    for entry in channel.graph_entries() {
        if kept.contains(entry.name) {
            entries.push(entry);
        }
    }
    let graph = ChannelGraph::new(&entries)?;
    let reached = reached(channel, kept, graph.head);
    let mut loose = Vec::new();
    for name in kept {
        if !reached.contains(name) || !graph.is_connected(name) {
            loose.push(*name);
        }
    }
    if loose.is_empty() {
        return Ok(());
    }
    let text = format!(
        "has entries that its head does not reach: {}",
        listed(&loose)
    );
    Err(ChannelFault { text, loose })
}

/// Returns the kept entries that the head updates, directly or through others. Each entry is
/// visited once.
fn reached<'a>(channel: &'a Channel, kept: &KeptEntries<'a>, head: &'a str) -> HashSet<&'a str> {
    let mut reached = HashSet::from([head]);
    let mut open = vec![head];
    while let Some(name) = open.pop() {
        let Some(entry) = channel.entries.get(name) else {
            continue;
        };
        for next in entry.updated() {
            if kept.contains(next) && reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

/// Returns the entries that are not kept and connect those that are: of the way from the head along
/// `replaces` the shortest part that has or skips all kept entries. oc-mirror v2 takes them along
/// with a range: a pre-release between two releases does not cut the channel in two, and two
/// releases above which the range ends have the bundle that updates both as their head.
// As `filterByVersionRange` of github.com/sherine-k/catalog-filter v0.0.5.
pub(crate) fn connecting<'a>(channel: &'a Channel, kept: &KeptEntries<'a>) -> Vec<&'a str> {
    let mut way = Vec::new();
    let mut visited = HashSet::new();
    let mut next = channel.heads().into_iter().next();
    while let Some((name, entry)) = next.and_then(|name| channel.entries.get_key_value(name)) {
        if !visited.insert(name) {
            break;
        }
        way.push((name.as_str(), entry));
        next = entry.replaces.as_deref();
    }

    // Kept entries that the way has or skips, up to the current one.
    let mut found = HashSet::new();
    // Entries above the last one that found something.
    let mut passed = Vec::new();
    let mut connecting = Vec::new();
    for (name, entry) in way.into_iter().rev() {
        let found_below = found.len();
        let covered = entry.skips.iter().map(String::as_str).chain([name]);
        found.extend(covered.filter(|covered| kept.contains(covered)));
        if !found.is_empty() && !kept.contains(name) {
            passed.push(name);
        }
        if found.len() > found_below {
            connecting.append(&mut passed);
        }
    }
    connecting
}

/// Advice for a channel that is broken: that in front of the entries that would connect it, and
/// that if there are none.
pub(crate) struct BrokenAdvice {
    pub(crate) connect: &'static str,
    pub(crate) otherwise: &'static str,
}

impl BrokenAdvice {
    /// Returns the error of a channel behind its name and what breaks it. Entries of `old` may
    /// connect what is kept.
    pub(crate) fn error(
        &self,
        place: &str,
        old: Option<&Channel>,
        kept: &KeptEntries<'_>,
        fault: ChannelFault<'_>,
    ) -> String {
        let advice = match old.and_then(|channel| updating(channel, kept, fault.loose)) {
            Some(missing) => format!("{}: {missing}", self.connect),
            None => self.otherwise.to_owned(),
        };
        format!("{place} the channel {}; {advice}", fault.text)
    }
}

/// Lists the entries that are not kept and update those that are loose. With them the channel may
/// be valid.
fn updating(channel: &Channel, kept: &KeptEntries<'_>, loose: Vec<&str>) -> Option<String> {
    let loose: HashSet<&str> = loose.into_iter().collect();
    let mut missing = Vec::new();
    for (name, entry) in &channel.entries {
        let is_kept = kept.contains(name.as_str());
        if !is_kept && entry.updated().any(|updated| loose.contains(updated)) {
            missing.push(name);
        }
    }
    if missing.is_empty() {
        return None;
    }
    Some(listed(&missing))
}
