//! The upgrade graph of a channel.

use std::collections::{HashMap, HashSet};

use super::{Rule, shape::Value};

/// Maximum number of names in the text of one finding.
const NAMES_MAX: usize = 20;

/// Entry of a channel.
pub(crate) struct Entry<'v> {
    pub(crate) name: &'v str,
    pub(crate) replaces: &'v str,
    pub(crate) skips: Vec<&'v str>,
    pub(crate) skip_range: &'v str,
}

impl<'v> Entry<'v> {
    pub(crate) fn new(value: &'v Value<'_>) -> Self {
        let name = |skip: &'v Value<'_>| match skip {
            Value::Text(text) => &**text,
            _ => "",
        };
        Self {
            name: value.text("name"),
            replaces: value.text("replaces"),
            skips: value.list("skips").iter().map(name).collect(),
            skip_range: value.text("skipRange"),
        }
    }
}

/// Returns the first rule that the graph breaks, with the names of the entries. The work grows with the number of edges:
/// the chain is walked once and without recursion.
pub(crate) fn graph_error(entries: &[Entry<'_>]) -> Option<(Rule, String)> {
    let by_name: HashMap<&str, &Entry<'_>> = entries.iter().map(|entry| (entry.name, entry)).collect();
    let skipped: HashSet<&str> = entries.iter().flat_map(|entry| &entry.skips).copied().collect();
    let replaced: HashSet<&str> = entries.iter().map(|entry| entry.replaces).collect();
    let is_head = |name: &&str| !skipped.contains(name) && (name.is_empty() || !replaced.contains(name));
    let heads: Vec<&str> = by_name.keys().copied().filter(is_head).collect();
    let head = match heads.as_slice() {
        [] => return Some((Rule::ChannelNoHead, String::new())),
        [head] => *head,
        _ => return Some((Rule::ChannelSeveralHeads, names(heads))),
    };
    let mut chain = HashSet::from([head]);
    let mut next = by_name.get(head);
    while let Some(entry) = next {
        // An update does not lead to a skipped entry, so the chain ends there.
        if skipped.contains(entry.replaces) {
            break;
        }
        if !chain.insert(entry.replaces) {
            return Some((
                Rule::ChannelCycle,
                format!("{} replaces {}", entry.name, entry.replaces),
            ));
        }
        next = by_name.get(entry.replaces);
    }
    let is_stranded = |name: &&str| !chain.contains(name) && !skipped.contains(name);
    let stranded: Vec<&str> = by_name.keys().copied().filter(is_stranded).collect();
    (!stranded.is_empty()).then(|| (Rule::ChannelStranded, names(stranded)))
}

fn names(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    let rest = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let names = names.join(", ");
    match rest {
        0 => names,
        rest => format!("{names} and {rest} more"),
    }
}
