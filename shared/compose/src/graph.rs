//! The upgrade graph of a part of a channel.

use std::collections::{BTreeSet, HashSet};

use olm::Channel;

use crate::error::{ChannelFault, listed};

/// Entries of a channel that are kept, by name.
pub(crate) type KeptEntries<'a> = BTreeSet<&'a str>;

/// Checks the kept entries by the rules of operator-registry v1.73.0 (`alpha/model`, `Channel.Validate`): one head, no cycle,
/// no stranded entry. In addition the head must reach each entry, which that code does not ask of entries that skip each other.
pub(crate) fn check(channel: &Channel, kept: &KeptEntries<'_>) -> Result<(), ChannelFault> {
    let entries = || {
        kept.iter()
            .filter_map(|name| Some((*name, channel.entries.get(*name)?)))
    };
    let skipped: HashSet<&str> = entries()
        .flat_map(|(_, entry)| &entry.skips)
        .map(String::as_str)
        .collect();
    let replaced: HashSet<&str> = entries().filter_map(|(_, entry)| entry.replaces.as_deref()).collect();
    let heads = entries()
        .map(|(name, _)| name)
        .filter(|name| !skipped.contains(name) && !replaced.contains(name));
    let heads: Vec<&str> = heads.collect();
    let head = match heads.as_slice() {
        [head] => *head,
        [] => return Err(ChannelFault::NoHead),
        _ => return Err(ChannelFault::Heads(owned(heads))),
    };
    // A cycle below the head would let an update loop, although the head reaches all of its entries.
    let chain = replaces_chain(channel, kept, head, &skipped)?;
    let reached = reached(channel, kept, head);
    let stranded = kept
        .iter()
        .filter(|name| !reached.contains(*name) || !(chain.contains(*name) || skipped.contains(*name)));
    let stranded: Vec<&str> = stranded.copied().collect();
    match stranded.is_empty() {
        true => Ok(()),
        false => Err(ChannelFault::Stranded(owned(stranded))),
    }
}

/// Returns the entries from the head along `replaces`. The chain stops behind an entry that another one skips.
fn replaces_chain<'a>(
    channel: &'a Channel,
    kept: &KeptEntries<'a>,
    head: &'a str,
    skipped: &HashSet<&str>,
) -> Result<HashSet<&'a str>, ChannelFault> {
    let mut chain = HashSet::from([head]);
    let mut current = head;
    while let Some(next) = channel.entries.get(current).and_then(|entry| entry.replaces.as_deref()) {
        if !chain.insert(next) {
            return Err(ChannelFault::Cycle(next.to_owned()));
        }
        if skipped.contains(next) || !kept.contains(next) {
            break;
        }
        current = next;
    }
    Ok(chain)
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

/// Lists the entries that are not kept and update those that the fault names. With them the channel may be valid.
pub(crate) fn connecting(channel: &Channel, kept: &KeptEntries<'_>, fault: &ChannelFault) -> Option<String> {
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
