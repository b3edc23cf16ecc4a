//! Drawings of the upgrade graph of a package.

use std::collections::{BTreeMap, HashSet};

use model::text::line;
use olm::{Channel, ChannelEntry, Package, UpgradeEntry, UpgradeGraph, UpgradeRule, UpgradeStep};

use crate::plan::PlanError;
use crate::{Bounds, Exceeded};

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
///
/// # Errors
/// Bounds that are exceeded.
pub fn draw(
    format: GraphFormat,
    name: &str,
    package: &Package,
    bounds: &Bounds,
) -> Result<String, PlanError> {
    let mut drawing = Drawing {
        package,
        bounds,
        text: String::new(),
    };
    if format == GraphFormat::Dot {
        drawing.text += &format!("digraph {} {{\n  rankdir=LR\n", format.quoted(name));
    }
    if format == GraphFormat::Mermaid {
        drawing.text += "graph LR\n";
    }
    let mut nodes = 0;
    for (number, (channel, content)) in package.channels.iter().enumerate() {
        let drawn = match format {
            GraphFormat::Text if number == 0 => drawing.lanes(channel, content),
            GraphFormat::Text => drawing
                .push("\n")
                .and_then(|()| drawing.lanes(channel, content)),
            _ => drawing.diagram(format, number, channel, content, &mut nodes),
        };
        drawn.map_err(|exceeded| {
            PlanError::exceeded(exceeded, &format!("package {name}, channel {channel}"))
        })?;
    }
    if format == GraphFormat::Dot {
        drawing.text += "}\n";
    }
    Ok(drawing.text)
}

impl GraphFormat {
    /// Returns a text in quotes, cut, with all signs escaped that have a meaning.
    fn quoted(self, text: &str) -> String {
        let mut quoted = "\"".to_owned();
        for c in line(text, LABEL_CHARS).chars() {
            match c {
                // A numeric entity.
                '#' | '&' | '"' | '<' | '>' if self == Self::Mermaid => {
                    quoted += &format!("#{};", u32::from(c));
                }
                '\\' | '"' if self == Self::Dot => quoted.extend(['\\', c]),
                c => quoted.push(c),
            }
        }
        quoted + "\""
    }

    /// Returns the line that begins a channel.
    fn box_begin(self, number: usize, label: &str) -> String {
        if self == Self::Mermaid {
            format!("  subgraph c{number}[{label}]\n")
        } else {
            format!("  subgraph cluster_{number} {{\n    label={label}\n")
        }
    }

    fn box_end(self) -> &'static str {
        if self == Self::Mermaid {
            "  end\n"
        } else {
            "  }\n"
        }
    }

    fn node(self, id: usize, label: &str) -> String {
        if self == Self::Mermaid {
            format!("    n{id}[{label}]\n")
        } else {
            format!("    n{id} [label={label}]\n")
        }
    }

    fn edge(self, from: usize, rule: UpgradeRule, to: usize) -> String {
        if self == Self::Mermaid {
            format!("    n{from}-- {rule} --> n{to}\n")
        } else {
            format!("    n{from} -> n{to} [label=\"{rule}\"]\n")
        }
    }
}

/// Text of a drawing, as far as it is made.
struct Drawing<'a> {
    package: &'a Package,
    bounds: &'a Bounds,
    text: String,
}

struct DiagramNode<'a> {
    id: usize,
    /// Version of an entry. A range updates entries only, so that of another bundle does not count.
    version: Option<&'a str>,
}

/// Entry that is drawn next, in the text form.
struct OpenEntry<'g, 'a> {
    entry: &'g UpgradeEntry<'a>,
    /// Number of lanes to the left of it.
    depth: usize,
    /// True if it starts a lane of its own.
    is_branch: bool,
}

impl Drawing<'_> {
    fn push(&mut self, text: &str) -> Result<(), Exceeded> {
        self.bounds.answer(text.len())?;
        self.text += text;
        Ok(())
    }

    /// Draws a box for a channel. `nodes` is the number of nodes that were drawn.
    fn diagram(
        &mut self,
        format: GraphFormat,
        number: usize,
        name: &str,
        channel: &Channel,
        nodes: &mut usize,
    ) -> Result<(), Exceeded> {
        let graph = UpgradeGraph::new(self.package, channel, &self.bounds.budget)?;
        self.push(&format.box_begin(number, &format.quoted(name)))?;
        let mut named: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        for bundle in channel.entries.values().flat_map(ChannelEntry::updated) {
            named.insert(bundle, None);
        }
        for entry in &graph.entries {
            named.insert(entry.name, entry.version);
        }
        let mut drawn = BTreeMap::new();
        for (name, version) in named {
            let id = *nodes;
            self.push(&format.node(id, &format.quoted(name)))?;
            drawn.insert(name, DiagramNode { id, version });
            *nodes += 1;
        }
        for (name, from) in &drawn {
            let updates = graph.updates(&UpgradeStep::start(name, from.version));
            self.bounds.budget.charge(1 + updates.len() as u64)?;
            for step in updates {
                let to = drawn[&*step.bundle].id;
                for rule in step.by {
                    self.push(&format.edge(from.id, rule, to))?;
                }
            }
        }
        self.push(format.box_end())
    }

    /// Draws each chain of `replaces` of a channel as a lane. Skipped entries are counted beside the
    /// entry that skips them, because they may be hundreds.
    fn lanes(&mut self, name: &str, channel: &Channel) -> Result<(), Exceeded> {
        let graph = UpgradeGraph::new(self.package, channel, &self.bounds.budget)?;
        let is_default = self.package.default_channel.as_deref() == Some(name);
        let is_deprecated = self.package.deprecation("olm.channel", name).is_some();
        self.push(&format!(
            "channel {}{}{}\n",
            line(name, LABEL_CHARS),
            if is_default { " (default)" } else { "" },
            if is_deprecated { " (deprecated)" } else { "" },
        ))?;
        let marks = EntryMarks {
            package: self.package,
            heads: channel.heads().into_iter().collect(),
            skipped: channel
                .entries
                .values()
                .flat_map(|entry| &entry.skips)
                .map(String::as_str)
                .collect(),
        };
        // Entries by the one that they replace, or by an empty name if it is not in the channel. The
        // newest come first.
        let mut replacing: BTreeMap<&str, Vec<&UpgradeEntry<'_>>> = BTreeMap::new();
        for entry in &graph.entries {
            let replaced = entry.entry.replaces.as_deref().unwrap_or_default();
            let is_there = channel.entries.contains_key(replaced);
            let replaced = if is_there { replaced } else { "" };
            replacing.entry(replaced).or_default().push(entry);
        }
        // From the oldest to the newest, and last those of cycles.
        let mut rows = Vec::new();
        while let Some(roots) = replacing
            .remove("")
            .or_else(|| Some(replacing.pop_last()?.1))
        {
            let roots = roots.into_iter().map(|entry| OpenEntry {
                entry,
                depth: 0,
                is_branch: false,
            });
            let mut open: Vec<OpenEntry<'_, '_>> = roots.collect();
            while let Some(one) = open.pop() {
                // Lanes may be as many as entries, and each row draws those to its left.
                self.bounds.answer(4 * one.depth)?;
                if one.is_branch {
                    rows.push("| ".repeat(one.depth - 1) + "|/\n");
                }
                let above = replacing.remove(one.entry.name).unwrap_or_default();
                open.extend(above.into_iter().enumerate().map(|(at, entry)| OpenEntry {
                    entry,
                    // The newest one goes on in the same lane.
                    depth: one.depth + at.min(1),
                    is_branch: at > 0,
                }));
                let row = format!(
                    "{}* {}  {}{}\n",
                    "| ".repeat(one.depth),
                    line(one.entry.version.unwrap_or("?"), LABEL_CHARS),
                    line(one.entry.name, LABEL_CHARS),
                    marks.of(one.entry),
                );
                self.bounds.answer(row.len())?;
                rows.push(row);
            }
        }
        rows.reverse();
        self.text.extend(rows);
        Ok(())
    }
}

/// Facts about a channel for the remarks beside its entries.
struct EntryMarks<'a> {
    package: &'a Package,
    heads: HashSet<&'a str>,
    skipped: HashSet<&'a str>,
}

impl EntryMarks<'_> {
    /// Returns the remarks about an entry, in brackets; empty if there are none.
    fn of(&self, entry: &UpgradeEntry<'_>) -> String {
        let mut marks = Vec::new();
        if self.heads.contains(entry.name) {
            marks.push("head".to_owned());
        }
        if self.skipped.contains(entry.name) {
            marks.push("skipped".to_owned());
        }
        if self.package.deprecation("olm.bundle", entry.name).is_some() {
            marks.push("deprecated".to_owned());
        }
        if let Some(replaced) = &entry.entry.replaces
            && !self.package.bundles.contains_key(replaced)
        {
            let replaced = line(replaced, LABEL_CHARS);
            marks.push(format!("replaces {replaced}, which is not in the catalog"));
        }
        if !entry.entry.skips.is_empty() {
            marks.push(format!("skips {}", entry.entry.skips.len()));
        }
        if let Some(range) = &entry.entry.skip_range {
            marks.push(format!("skipRange {}", line(range, LABEL_CHARS)));
        }
        if marks.is_empty() {
            return String::new();
        }
        format!("  ({})", marks.join("; "))
    }
}
