//! The upgrade graph of a channel, by the rules of operator-registry v1.73.0 (`alpha/model`,
//! `Channel.Validate`).

use std::collections::{HashMap, HashSet};

/// Entry of a channel as a node of its upgrade graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphEntry<'a> {
    /// Name of the bundle.
    pub name: &'a str,
    /// Name of the entry that it replaces.
    pub replaces: Option<&'a str>,
    /// Names of the entries that it skips.
    pub skips: Vec<&'a str>,
}

/// Upgrade graph with one head and without a cycle along `replaces`.
#[derive(Debug, Clone)]
pub struct ChannelGraph<'a> {
    /// Entry that no entry replaces or skips.
    pub head: &'a str,
    /// Entries from the head along `replaces`, and those that an entry skips.
    connected: HashSet<&'a str>,
}

/// Rule that an upgrade graph breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphFault<'a> {
    /// Each entry is replaced or skipped by another one.
    #[error("no entry is a head")]
    NoHead,
    /// These entries are neither replaced nor skipped. In byte order.
    #[error("it has {} heads: {}", .0.len(), .0.join(", "))]
    Heads(Vec<&'a str>),
    /// The chain of `replaces` comes back to an earlier entry.
    #[error("its entries replace each other in a cycle at {replaces}")]
    Cycle {
        /// Entry that closes the cycle.
        name: &'a str,
        /// Entry that it replaces.
        replaces: &'a str,
    },
}

impl<'a> ChannelGraph<'a> {
    /// Reads the graph. The work grows with the number of edges: the chain is walked once and
    /// without recursion.
    ///
    /// # Errors
    /// The first rule that the graph breaks.
    pub fn new(entries: &[GraphEntry<'a>]) -> Result<Self, GraphFault<'a>> {
        let mut connected: HashSet<&str> = entries
            .iter()
            .flat_map(|entry| &entry.skips)
            .copied()
            .collect();
        // The chain ends before a skipped entry, because no update leads there.
        let chain = chain(entries, |name| connected.contains(name))?;
        let head = chain[0];
        connected.extend(chain);
        Ok(Self { head, connected })
    }

    /// Returns false for a stranded entry: one that is neither on the chain from the head nor
    /// skipped.
    pub fn is_connected(&self, name: &str) -> bool {
        self.connected.contains(name)
    }
}

/// Returns the names from the head along `replaces`, the head first, up to one before which the
/// chain ends. Of two entries with one name the chain follows the last.
pub(crate) fn chain<'a>(
    entries: &[GraphEntry<'a>],
    ends_before: impl Fn(&str) -> bool,
) -> Result<Vec<&'a str>, GraphFault<'a>> {
    let replaced: HashMap<&str, Option<&'a str>> = entries
        .iter()
        .map(|entry| (entry.name, entry.replaces))
        .collect();
    let mut name = match *heads(entries).as_slice() {
        [] => return Err(GraphFault::NoHead),
        [head] => head,
        ref several => return Err(GraphFault::Heads(several.to_vec())),
    };
    let mut chain = vec![name];
    let mut visited = HashSet::from([name]);
    while let Some(replaces) = replaced
        .get(name)
        .copied()
        .flatten()
        .filter(|next| !ends_before(next))
    {
        if !visited.insert(replaces) {
            return Err(GraphFault::Cycle { name, replaces });
        }
        chain.push(replaces);
        name = replaces;
    }
    Ok(chain)
}

/// Returns the entries that no entry replaces or skips, each once, in byte order.
pub(crate) fn heads<'a>(entries: &[GraphEntry<'a>]) -> Vec<&'a str> {
    let replaced = entries.iter().filter_map(|entry| entry.replaces);
    // An entry without a name is not replaced by those that replace nothing.
    let replaced = replaced.filter(|name| !name.is_empty());
    let skipped = entries.iter().flat_map(|entry| &entry.skips).copied();
    let updated: HashSet<&str> = replaced.chain(skipped).collect();
    let names = entries.iter().map(|entry| entry.name);
    let mut heads: Vec<&str> = names.filter(|name| !updated.contains(name)).collect();
    heads.sort_unstable();
    heads.dedup();
    heads
}
