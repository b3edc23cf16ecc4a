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
        let no_head = "has no head: its entries replace or skip each other in a cycle";
        let (text, loose) = match fault {
            GraphFault::NoHead => (no_head.to_owned(), Vec::new()),
            GraphFault::Heads(heads) => (format!("has several heads: {}", listed(&heads)), heads),
            GraphFault::Cycle { replaces, .. } => (
                format!("has a cycle of replaces through {replaces}"),
                Vec::new(),
            ),
        };
        Self { text, loose }
    }
}

/// Checks the kept entries by the rules of operator-registry v1.73.0 (`alpha/model`,
/// `Channel.Validate`): one head, no cycle, no stranded entry. In addition the head must reach each
/// entry, which that code does not ask of entries that skip each other.
pub(crate) fn check<'a>(
    channel: &'a Channel,
    kept: &KeptEntries<'a>,
) -> Result<(), ChannelFault<'a>> {
    let entries = channel
        .graph_entries()
        .filter(|entry| kept.contains(entry.name));
    let graph = ChannelGraph::new(&entries.collect::<Vec<_>>())?;
    let reached = reached(channel, kept, graph.head);
    let is_loose = |name: &&str| !reached.contains(name) || !graph.is_connected(name);
    let loose: Vec<&str> = kept.iter().copied().filter(is_loose).collect();
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

/// Returns the entries that are not kept and lie between two that are, on the way from the head
/// along `replaces`. oc-mirror v2 takes such entries along with a range, so that a pre-release
/// between two releases does not cut the channel in two.
pub(crate) fn between<'a>(channel: &'a Channel, kept: &KeptEntries<'a>) -> Vec<&'a str> {
    let (mut between, mut passed, mut visited) = (Vec::new(), Vec::new(), HashSet::new());
    let mut next = channel.heads().into_iter().next();
    let mut is_below_kept = false;
    while let Some((name, entry)) = next.and_then(|name| channel.entries.get_key_value(name)) {
        if !visited.insert(name) {
            break;
        }
        if kept.contains(name.as_str()) {
            between.append(&mut passed);
            is_below_kept = true;
        } else if is_below_kept {
            passed.push(name.as_str());
        }
        next = entry.replaces.as_deref();
    }
    between
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
        let advice = match old.and_then(|channel| connecting(channel, kept, fault.loose)) {
            Some(missing) => format!("{}: {missing}", self.connect),
            None => self.otherwise.to_owned(),
        };
        format!("{place} the channel {}; {advice}", fault.text)
    }
}

/// Lists the entries that are not kept and update those that are loose. With them the channel may
/// be valid.
fn connecting(channel: &Channel, kept: &KeptEntries<'_>, loose: Vec<&str>) -> Option<String> {
    let loose: HashSet<&str> = loose.into_iter().collect();
    let missing = channel
        .entries
        .iter()
        .filter(|(name, _)| !kept.contains(name.as_str()));
    let missing = missing.filter(|(_, entry)| entry.updated().any(|name| loose.contains(name)));
    let missing: Vec<&String> = missing.map(|(name, _)| name).collect();
    (!missing.is_empty()).then(|| listed(&missing))
}
