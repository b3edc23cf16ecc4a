use std::collections::HashSet;

use super::{
    Place, Report, Rule,
    graph::{Entry, graph_error},
    quoted,
    schemas::{CHANNEL, META},
    shape::{Value, decode},
    version::is_range,
};

/// One `olm.channel`.
pub(crate) struct ChannelFacts<'a> {
    pub(crate) line: usize,
    pub(crate) channel: Value<'a>,
}

impl<'a> ChannelFacts<'a> {
    /// Decodes a line, and reports fields of the wrong type under the name of the channel.
    pub(crate) fn decode(line: usize, bytes: &'a [u8], report: &mut Report<'_>) -> Self {
        let header = decode(bytes, &META).map(|(header, _)| header).unwrap_or_default();
        let place = Place {
            line,
            channel: header.text("name"),
            bundle: "",
        };
        let channel = report.decode(bytes, &CHANNEL, place);
        Self { line, channel }
    }

    pub(crate) fn name(&self) -> &str {
        self.channel.text("name")
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            line: self.line,
            channel: self.name(),
            bundle: "",
        }
    }

    /// Checks the entries, and adds their names to `all`.
    pub(crate) fn check<'v>(&'v self, bundles: &HashSet<&str>, all: &mut HashSet<&'v str>, report: &mut Report<'_>) {
        let place = self.place();
        if self.name().is_empty() {
            report.add(Rule::ChannelNameMissing, place, "");
        }
        let entries: Vec<Entry<'_>> = self.channel.list("entries").iter().map(Entry::new).collect();
        let mut names = HashSet::with_capacity(entries.len());
        for entry in &entries {
            let place = Place {
                bundle: entry.name,
                ..place
            };
            if entry.name.is_empty() {
                report.add(Rule::EntryNameMissing, place, "");
            } else if !bundles.contains(entry.name) {
                report.add(Rule::EntryNoBundle, place, "");
            }
            if !names.insert(entry.name) {
                report.add(Rule::EntryDuplicate, place, "");
            }
            if entry.skips.contains(&"") {
                report.add(Rule::EntrySkipEmpty, place, "");
            }
            if !entry.skip_range.is_empty() && !is_range(entry.skip_range) {
                report.add(Rule::EntrySkipRangeInvalid, place, &quoted(entry.skip_range));
            }
        }
        all.extend(&names);
        if entries.is_empty() {
            report.add(Rule::ChannelEmpty, place, "");
        } else if let Some((rule, names)) = graph_error(&entries) {
            report.add(rule, place, &names);
        }
    }
}
