//! Drawings of the upgrade graph of a package.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt::Write,
};

use model::text::line;
use olm::{Channel, DeprecationTarget, Package, UpgradeEntry, UpgradeGraph};

/// Longest name or range in a drawing, in characters.
const LABEL_CHARS: usize = 200;

/// Format of a drawing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum GraphFormat {
    /// Lines for a terminal, the newest version first, with chains of replaces as git draws branches.
    #[default]
    Text,
    /// A flowchart for Mermaid.
    Mermaid,
    /// A graph for Graphviz.
    Dot,
}

/// Draws the channels of a package.
pub fn draw(format: GraphFormat, name: &str, package: &Package, channels: &BTreeMap<&str, &Channel>) -> String {
    let mut drawing = Drawing {
        format,
        package,
        text: String::new(),
        numbers: 0,
    };
    let label = drawing.quoted(name);
    match format {
        GraphFormat::Text => {}
        GraphFormat::Mermaid => drawing.line("graph LR"),
        GraphFormat::Dot => drawing.line(&format!("digraph {label} {{\n  rankdir=LR")),
    }
    for (number, (name, channel)) in channels.iter().enumerate() {
        let graph = UpgradeGraph::new(package, channel);
        if format == GraphFormat::Text {
            if number > 0 {
                drawing.line("");
            }
            drawing.lanes(name, channel, &graph);
        } else {
            drawing.nodes_and_edges(number, name, &graph);
        }
    }
    if format == GraphFormat::Dot {
        drawing.line("}");
    }
    drawing.text
}

struct Drawing<'a> {
    format: GraphFormat,
    package: &'a Package,
    text: String,
    /// Number of nodes so far.
    numbers: usize,
}

impl Drawing<'_> {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Returns a foreign text in quotes of the format.
    fn quoted(&self, text: &str) -> String {
        let text = line(text, LABEL_CHARS);
        match self.format {
            GraphFormat::Mermaid => {
                let entities = [("&", "#amp;"), ("\"", "#quot;"), ("<", "#lt;"), (">", "#gt;")];
                // `#` first: it starts an entity itself.
                let text = text.replace('#', "#35;");
                let text = entities.iter().fold(text, |text, (from, to)| text.replace(from, to));
                format!("\"{text}\"")
            }
            _ => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        }
    }

    fn nodes_and_edges(&mut self, number: usize, channel: &str, graph: &UpgradeGraph<'_>) {
        let edges: Vec<_> = graph.edges().collect();
        let ends = edges.iter().flat_map(|edge| [edge.from, edge.to]);
        let names: BTreeSet<&str> = graph.entries().iter().map(|entry| entry.name).chain(ends).collect();
        let ids: BTreeMap<&str, String> = names
            .into_iter()
            .zip(self.numbers..)
            .map(|(name, id)| (name, format!("n{id}")))
            .collect();
        self.numbers += ids.len();
        let label = self.quoted(channel);
        let is_mermaid = self.format == GraphFormat::Mermaid;
        self.line(&if is_mermaid {
            format!("  subgraph c{number}[{label}]")
        } else {
            format!("  subgraph cluster_{number} {{\n    label={label}")
        });
        for (name, id) in &ids {
            let label = self.quoted(name);
            self.line(&if is_mermaid {
                format!("    {id}[{label}]")
            } else {
                format!("    {id} [label={label}]")
            });
        }
        for edge in edges {
            let (from, to, rule) = (&ids[edge.from], &ids[edge.to], edge.rule.as_str());
            self.line(&if is_mermaid {
                format!("    {from}-- {rule} --> {to}")
            } else {
                format!("    {from} -> {to} [label=\"{rule}\"]")
            });
        }
        self.line(if is_mermaid { "  end" } else { "  }" });
    }

    fn is_deprecated(&self, schema: &str, name: &str) -> bool {
        self.package.deprecations.contains_key(&DeprecationTarget {
            schema: schema.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Draws a chain of `replaces` as a lane. What an entry skips stands beside it, because it may be hundreds.
    fn lanes(&mut self, name: &str, channel: &Channel, graph: &UpgradeGraph<'_>) {
        let default = if self.package.default_channel.as_deref() == Some(name) {
            " (default)"
        } else {
            ""
        };
        let deprecated = if self.is_deprecated("olm.channel", name) {
            " (deprecated)"
        } else {
            ""
        };
        self.line(&format!("channel {}{default}{deprecated}", line(name, LABEL_CHARS)));
        let heads: HashSet<&str> = channel.heads().into_iter().collect();
        let skipped = graph.entries().iter().flat_map(|entry| &entry.entry.skips);
        let skipped: HashSet<&str> = skipped.map(String::as_str).collect();
        // Name of the entry to which each lane leads.
        let mut lanes: Vec<Option<&str>> = Vec::new();
        let mut drawn: HashSet<&str> = HashSet::new();
        for entry in replacing_first(graph) {
            drawn.insert(entry.name);
            let lane = lanes.iter().position(|lane| *lane == Some(entry.name));
            let lane = lane
                .or_else(|| lanes.iter().position(Option::is_none))
                .unwrap_or_else(|| {
                    lanes.push(None);
                    lanes.len() - 1
                });
            let marks = lanes.iter().enumerate().map(|(number, content)| match content {
                _ if number == lane => "* ",
                Some(_) => "| ",
                None => "  ",
            });
            let mut row: String = marks.collect();
            row.push_str(&self.describe(entry, heads.contains(entry.name), skipped.contains(entry.name)));
            self.line(&row);
            let replaced = entry.entry.replaces.as_deref();
            lanes[lane] = replaced.filter(|name| channel.entries.contains_key(*name) && !drawn.contains(name));
            let other = lanes
                .iter()
                .enumerate()
                .position(|(number, content)| number != lane && content.is_some() && *content == lanes[lane]);
            if let Some(other) = other {
                let (left, right) = (lane.min(other), lane.max(other));
                self.line(&joined(&lanes, left, right));
                lanes[right] = None;
            }
            while lanes.last() == Some(&None) {
                lanes.pop();
            }
        }
    }

    fn describe(&self, entry: &UpgradeEntry<'_>, is_head: bool, is_skipped: bool) -> String {
        let version = self
            .package
            .bundles
            .get(entry.name)
            .and_then(|bundle| bundle.version.as_deref());
        let mut text = format!(
            "{}  {}",
            line(version.unwrap_or("?"), LABEL_CHARS),
            line(entry.name, LABEL_CHARS)
        );
        let skips = entry.entry.skips.len();
        let away = entry
            .entry
            .replaces
            .as_ref()
            .filter(|name| !self.package.bundles.contains_key(*name));
        let marks = [
            is_head.then(|| "head".to_owned()),
            is_skipped.then(|| "skipped".to_owned()),
            self.is_deprecated("olm.bundle", entry.name)
                .then(|| "deprecated".to_owned()),
            away.map(|name| format!("replaces {}, which is not in the catalog", line(name, LABEL_CHARS))),
            (skips > 0).then(|| format!("skips {skips}")),
            entry
                .entry
                .skip_range
                .as_ref()
                .map(|range| format!("skipRange {}", line(range, LABEL_CHARS))),
        ];
        let marks: Vec<String> = marks.into_iter().flatten().collect();
        if !marks.is_empty() {
            let _ = write!(text, "  ({})", marks.join("; "));
        }
        text
    }
}

/// Draws the lane on the right as it ends in the one on the left.
fn joined(lanes: &[Option<&str>], left: usize, right: usize) -> String {
    let mut row = String::new();
    for (number, lane) in lanes.iter().enumerate() {
        let is_between = left < number && number < right;
        row.push(match lane {
            _ if number == right => ' ',
            Some(_) => '|',
            None if is_between => '_',
            None => ' ',
        });
        row.push(match number + 1 {
            next if next == right => '/',
            next if left < next && next < right => '_',
            _ => ' ',
        });
    }
    row.trim_end().to_owned()
}

/// Returns the entries so that each comes after those that replace it, and the newest first. A cycle starts with its newest entry.
fn replacing_first<'g, 'a>(graph: &'g UpgradeGraph<'a>) -> Vec<&'g UpgradeEntry<'a>> {
    let entries = graph.entries();
    let by_name: BTreeMap<&str, usize> = entries
        .iter()
        .enumerate()
        .map(|(number, entry)| (entry.name, number))
        .collect();
    let replaced = |number: usize| {
        entries[number]
            .entry
            .replaces
            .as_deref()
            .and_then(|name| by_name.get(name).copied())
    };
    let mut open = vec![0_usize; entries.len()];
    for number in (0..entries.len()).filter_map(replaced) {
        open[number] += 1;
    }
    let mut left: BTreeSet<usize> = (0..entries.len()).collect();
    let mut ready: BTreeSet<usize> = left.iter().copied().filter(|number| open[*number] == 0).collect();
    let mut order = Vec::with_capacity(entries.len());
    while let Some(number) = ready.pop_first().or_else(|| left.first().copied()) {
        left.remove(&number);
        order.push(&entries[number]);
        if let Some(next) = replaced(number) {
            open[next] = open[next].saturating_sub(1);
            if open[next] == 0 && left.contains(&next) {
                ready.insert(next);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::testing::package;

    fn drawn(format: GraphFormat, channels: &str) -> String {
        let package = package(channels);
        let channels = package.channels.iter().map(|(name, channel)| (name.as_str(), channel));
        draw(format, "p", &package, &channels.collect())
    }

    #[rstest]
    #[case::branch(
        "c: 1.0.0; 1.1.0 <1.0.0; 1.0.1 <1.0.0; 1.2.0 <1.1.0 -1.0.1",
        &["* 1.2.0  p.v1.2.0  (head; skips 1)", "* 1.1.0  p.v1.1.0", "| * 1.0.1  p.v1.0.1  (skipped)", "|/", "* 1.0.0  p.v1.0.0"]
    )]
    #[case::branch_beyond_another(
        "c: 1.0.0; 2.0.0; 3.0.0 <1.0.0; 2.2.0 <2.0.0; 2.1.0 <1.0.0",
        &["* 3.0.0  p.v3.0.0  (head)", "| * 2.2.0  p.v2.2.0  (head)", "| | * 2.1.0  p.v2.1.0  (head)", "|_|/", "| * 2.0.0  p.v2.0.0",
          "* 1.0.0  p.v1.0.0"]
    )]
    #[case::range_and_what_is_gone(
        "c: 1.0.0 <0.9.0 ~<1.0.0", &["* 1.0.0  p.v1.0.0  (head; replaces p.v0.9.0, which is not in the catalog; skipRange <1.0.0)"]
    )]
    #[case::cycle("c: 1.0.0 <1.1.0; 1.1.0 <1.0.0", &["* 1.1.0  p.v1.1.0", "* 1.0.0  p.v1.0.0"])]
    fn draw_text_has_lane_for_each_chain(#[case] channels: &str, #[case] expected: &[&str]) {
        let text = drawn(GraphFormat::Text, channels);
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected, "{text}");
        assert!(text.starts_with("channel c (default)\n"), "{text}");
    }

    #[rstest]
    #[case::mermaid(GraphFormat::Mermaid, &["graph LR", "subgraph c0[\"a\"]", "n0[\"p.v1.0.0\"]", "n0-- replace --> n1", "n0-- skipRange --> n1"])]
    #[case::dot(GraphFormat::Dot, &["digraph \"p\" {", "label=\"a\"", "n0 [label=\"p.v1.0.0\"]", "n0 -> n1 [label=\"replace\"]"])]
    fn draw_has_edges_of_each_channel(#[case] format: GraphFormat, #[case] parts: &[&str]) {
        let text = drawn(format, "a: 1.0.0; 1.1.0 <1.0.0 ~<1.1.0\nb: 1.0.0");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        let nodes = text.matches("p.v1.0.0").count();
        assert_eq!(nodes, 2, "a node for each channel: {text}");
    }

    #[test]
    fn draw_escapes_names() {
        let package = olm::PackageParser::parse(
            b"{\"entries\":[{\"name\":\"a\\\"]--> <b>#\\u001b\"}],\"name\":\"c\",\"schema\":\"olm.channel\"}\n",
        );
        let channels = BTreeMap::from([("c", &package.channels["c"])]);
        let drawn = |format| draw(format, "p", &package, &channels);
        assert!(
            drawn(GraphFormat::Mermaid).contains(r#"n0["a#quot;]--#gt; #lt;b#gt;#35;"#),
            "{}",
            drawn(GraphFormat::Mermaid)
        );
        assert!(
            drawn(GraphFormat::Dot).contains(r#"label="a\"]-->"#),
            "{}",
            drawn(GraphFormat::Dot)
        );
        for format in [GraphFormat::Text, GraphFormat::Mermaid, GraphFormat::Dot] {
            assert!(!drawn(format).contains('\u{1b}'));
        }
    }
}
