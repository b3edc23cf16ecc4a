//! Drawings of the upgrade graph of a package.

use std::collections::{BTreeMap, HashSet};
use std::iter;

use model::text::line;
use olm::{Channel, ChannelEntry, Package, UpgradeEntry, UpgradeGraph, UpgradeStep};

/// Longest name or range in a drawing, in characters.
const LABEL_CHARS: usize = 200;

/// Format of a drawing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum GraphFormat {
    /// Lines for a terminal, the newest version first, with chains of replaces as git draws
    /// branches.
    #[default]
    Text,
    /// A flowchart for Mermaid.
    Mermaid,
    /// A graph for Graphviz.
    Dot,
}

/// Draws the channels of a package.
pub fn draw(format: GraphFormat, name: &str, package: &Package) -> String {
    match format {
        GraphFormat::Text => {
            let channels = package.channels.iter();
            let lanes = channels.map(|(name, channel)| lanes(package, name, channel));
            lanes.collect::<Vec<_>>().join("\n")
        }
        GraphFormat::Mermaid => diagram(true, name, package),
        GraphFormat::Dot => diagram(false, name, package),
    }
}

/// Draws a box for each channel, for Mermaid or for Graphviz.
fn diagram(is_mermaid: bool, name: &str, package: &Package) -> String {
    let either = |mermaid: String, dot: String| if is_mermaid { mermaid } else { dot };
    let escaped = |c: char| match c {
        // A numeric entity.
        '#' | '&' | '"' | '<' | '>' if is_mermaid => format!("#{};", u32::from(c)),
        '\\' | '"' if !is_mermaid => format!("\\{c}"),
        c => c.to_string(),
    };
    let quoted = |text: &str| {
        let text: String = line(text, LABEL_CHARS).chars().map(escaped).collect();
        format!("\"{text}\"")
    };
    let start = format!("digraph {} {{\n  rankdir=LR\n", quoted(name));
    let mut text = either("graph LR\n".to_owned(), start);
    let mut numbers = 0..;
    for (number, (channel, content)) in package.channels.iter().enumerate() {
        let (label, graph) = (quoted(channel), UpgradeGraph::new(package, content));
        let start = format!("  subgraph cluster_{number} {{\n    label={label}\n");
        text += &either(format!("  subgraph c{number}[{label}]\n"), start);
        let updated = content.entries.values().flat_map(ChannelEntry::updated);
        // Versions by name. A range updates entries only, so the version of another bundle does not
        // count.
        let versions = updated.map(|name| (name, None));
        let versions = versions.chain(
            graph
                .entries
                .iter()
                .map(|entry| (entry.name, entry.version)),
        );
        let versions: BTreeMap<&str, Option<&str>> = versions.collect();
        let ids: BTreeMap<&str, usize> =
            iter::zip(versions.keys().copied(), &mut numbers).collect();
        for (name, id) in &ids {
            let label = quoted(name);
            text += &either(
                format!("    n{id}[{label}]\n"),
                format!("    n{id} [label={label}]\n"),
            );
        }
        for (name, version) in versions {
            let from = ids[name];
            for step in graph.updates(&UpgradeStep::start(name, version)) {
                let to = ids[&*step.bundle];
                for rule in step.by {
                    let edge = format!("    n{from} -> n{to} [label=\"{rule}\"]\n");
                    text += &either(format!("    n{from}-- {rule} --> n{to}\n"), edge);
                }
            }
        }
        text += &either("  end\n".to_owned(), "  }\n".to_owned());
    }
    text + &either(String::new(), "}\n".to_owned())
}

/// Draws each chain of `replaces` as a lane. Skipped entries are counted beside the entry that
/// skips them, because they may be hundreds.
fn lanes(package: &Package, name: &str, channel: &Channel) -> String {
    let shown = |text: &str| line(text, LABEL_CHARS);
    let is_default = package.default_channel.as_deref() == Some(name);
    let is_deprecated = package.deprecation("olm.channel", name).is_some();
    let mut text = format!("channel {}", shown(name));
    text += if is_default { " (default)" } else { "" };
    text += if is_deprecated {
        " (deprecated)\n"
    } else {
        "\n"
    };
    let (graph, heads) = (UpgradeGraph::new(package, channel), channel.heads());
    let skipped = channel.entries.values().flat_map(|entry| &entry.skips);
    let skipped: HashSet<&str> = skipped.map(String::as_str).collect();
    // Entries by the one that they replace, or by an empty name if it is not in the channel. The
    // newest come first.
    let mut replacing: BTreeMap<&str, Vec<&UpgradeEntry<'_>>> = BTreeMap::new();
    for entry in &graph.entries {
        let replaced = entry.entry.replaces.as_deref().unwrap_or_default();
        let (replaced, _) = channel.entries.get_key_value(replaced).unzip();
        let entries = replacing.entry(replaced.map_or("", String::as_str));
        entries.or_default().push(entry);
    }
    // From the oldest to the newest, and last those of cycles.
    let mut rows = Vec::new();
    while let Some(roots) = replacing
        .remove("")
        .or_else(|| Some(replacing.pop_last()?.1))
    {
        let mut open: Vec<_> = roots.into_iter().map(|root| (root, 0, false)).collect();
        while let Some((entry, depth, is_branch)) = open.pop() {
            if is_branch {
                rows.push("| ".repeat(depth - 1) + "|/\n");
            }
            // The newest one goes on in the same lane.
            let above = replacing.remove(entry.name).unwrap_or_default().into_iter();
            open.extend(
                above
                    .enumerate()
                    .map(|(at, entry)| (entry, depth + at.min(1), at > 0)),
            );
            let (name, gone) = (entry.name, entry.entry.replaces.as_ref());
            let gone = gone.filter(|name| !package.bundles.contains_key(*name));
            let (skips, range) = (entry.entry.skips.len(), entry.entry.skip_range.as_ref());
            let marks = [
                heads.contains(&name).then(|| "head".to_owned()),
                skipped.contains(name).then(|| "skipped".to_owned()),
                package
                    .deprecation("olm.bundle", name)
                    .map(|_| "deprecated".to_owned()),
                gone.map(|name| format!("replaces {}, which is not in the catalog", shown(name))),
                (skips > 0).then(|| format!("skips {skips}")),
                range.map(|range| format!("skipRange {}", shown(range))),
            ];
            let mut marks = marks.into_iter().flatten().collect::<Vec<_>>().join("; ");
            if !marks.is_empty() {
                marks = format!("  ({marks})");
            }
            let (lanes, version) = ("| ".repeat(depth), shown(entry.version.unwrap_or("?")));
            rows.push(format!("{lanes}* {version}  {}{marks}\n", shown(name)));
        }
    }
    rows.reverse();
    text + &rows.concat()
}
