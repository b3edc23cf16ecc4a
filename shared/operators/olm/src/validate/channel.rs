use std::collections::{BTreeSet, HashSet};

use crate::VersionRange;
use crate::graph::{ChannelGraph, GraphEntry, GraphFault};

use super::{Place, Report, Rule, quoted, value::Value};

/// Maximum number of names in the text of one finding.
const NAMES_MAX: usize = 20;

/// Checks an `olm.channel` and its entries, and adds their names to `all`.
pub(super) fn check_channel<'v>(
    channel: &'v Value<'_>,
    place: Place<'_>,
    bundles: &HashSet<&str>,
    all: &mut HashSet<&'v str>,
    report: &mut Report<'_>,
) {
    report.require(!place.channel.is_empty(), Rule::ChannelNameMissing, place);
    let values = channel.list("entries");
    let entries = values.iter().map(|value| GraphEntry {
        name: value.text("name"),
        // opm walks to the entry without a name, if there is one.
        replaces: Some(value.text("replaces")),
        skips: value.list("skips").iter().map(Value::as_text).collect(),
    });
    let entries: Vec<GraphEntry<'_>> = entries.collect();
    let mut names = HashSet::with_capacity(entries.len());
    for (value, entry) in values.iter().zip(&entries) {
        let is_named = !entry.name.is_empty();
        let place = Place {
            bundle: entry.name,
            ..place
        };
        report.require(is_named, Rule::EntryNameMissing, place);
        report.require(
            !is_named || bundles.contains(entry.name),
            Rule::EntryNoBundle,
            place,
        );
        report.require(names.insert(entry.name), Rule::EntryDuplicate, place);
        report.require(!entry.skips.contains(&""), Rule::EntrySkipEmpty, place);
        let skip_range = value.text("skipRange");
        if !skip_range.is_empty() && VersionRange::parse(skip_range).is_none() {
            report.add(Rule::EntrySkipRangeInvalid, place, &quoted(skip_range));
        }
    }
    all.extend(&names);
    if entries.is_empty() {
        report.add(Rule::ChannelEmpty, place, "");
    } else if let Some((rule, names)) = graph_error(&entries) {
        report.add(rule, place, &names);
    }
}

/// Returns the first rule that the graph breaks, with the names of the entries.
fn graph_error(entries: &[GraphEntry<'_>]) -> Option<(Rule, String)> {
    let graph = match ChannelGraph::new(entries) {
        Ok(graph) => graph,
        Err(GraphFault::NoHead) => return Some((Rule::ChannelNoHead, String::new())),
        Err(GraphFault::Heads(heads)) => return Some((Rule::ChannelSeveralHeads, names(&heads))),
        Err(GraphFault::Cycle { name, replaces }) => {
            return Some((Rule::ChannelCycle, format!("{name} replaces {replaces}")));
        }
    };
    let stranded = entries.iter().map(|entry| entry.name);
    let stranded: BTreeSet<&str> = stranded.filter(|name| !graph.is_connected(name)).collect();
    let stranded: Vec<&str> = stranded.into_iter().collect();
    (!stranded.is_empty()).then(|| (Rule::ChannelStranded, names(&stranded)))
}

fn names(names: &[&str]) -> String {
    let first = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => first,
        rest => format!("{first} and {rest} more"),
    }
}
