//! Small catalogs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use compose::{
    ComposeError, ComposedContent, Composition, DependencyRule, Explanation, PackageSource,
    ReadError, ReadSeek,
};
use olm::PackageParser;
use work::Budget;

/// Returns the canonical lines of a package with these channels, such as
/// `stable: 1.0.0 1.2.0<1.1.0,-1.0.0; fast: 1.0.0`. The first one is the default one. An entry is a
/// version, what it replaces, and what it skips.
pub(crate) fn package(name: &str, channels: &str) -> String {
    let (default, _) = channels.split_once(':').unwrap();
    let mut lines =
        format!(r#"{{"defaultChannel":"{default}","name":"{name}","schema":"olm.package"}}"#)
            + "\n";
    let mut versions = BTreeSet::new();
    for channel in channels.split("; ") {
        let (channel, entries) = channel.split_once(": ").unwrap();
        let entries = entries
            .split(' ')
            .map(|entry| entry_json(name, entry, &mut versions));
        let entries = entries.collect::<Vec<_>>().join(",");
        lines += &format!(
            r#"{{"entries":[{entries}],"name":"{channel}","package":"{name}","schema":"olm.channel"}}"#
        );
        lines.push('\n');
    }
    lines.extend(versions.into_iter().map(|version| bundle(name, version)));
    lines
}

fn entry_json<'a>(name: &str, entry: &'a str, versions: &mut BTreeSet<&'a str>) -> String {
    let (version, updates) = entry.split_once('<').unwrap_or((entry, ""));
    versions.insert(version);
    let updates: Vec<&str> = updates
        .split(',')
        .filter(|update| !update.is_empty())
        .collect();
    let mut json = format!(r#"{{"name":"{name}.v{version}""#);
    if let Some(replaced) = updates.iter().find(|update| !update.starts_with('-')) {
        json += &format!(r#","replaces":"{name}.v{replaced}""#);
    }
    let skips = updates.iter().filter_map(|update| update.strip_prefix('-'));
    let skips: Vec<String> = skips
        .map(|version| format!(r#""{name}.v{version}""#))
        .collect();
    if !skips.is_empty() {
        json += &format!(r#","skips":[{}]"#, skips.join(","));
    }
    json + "}"
}

/// Returns the line of a bundle.
pub(crate) fn bundle(package: &str, version: &str) -> String {
    format!(
        r#"{{"image":"r.example/{package}:{version}","name":"{package}.v{version}","package":"{package}","properties":[{{"type":"olm.package","value":{{"packageName":"{package}","version":"{version}"}}}}],"schema":"olm.bundle"}}"#
    ) + "\n"
}

/// Composes what a selection takes of a catalog. An error does not name the input.
pub(crate) fn select(
    selection: &str,
    packages: &[(&str, &str)],
) -> Result<ComposedCatalog, String> {
    let yaml = format!("dependencies: ignore\ninputs:\n- catalog: one\n  select:\n    {selection}");
    let composed = compose(&yaml, &mut [MemoryCatalog::new(packages)]);
    composed.map_err(|error| error.to_string().replacen("input one: ", "", 1))
}

/// Returns the default channel and the versions of each channel, such as
/// `*fast: 1.1.0 2.0.0; stable: 1.0.0`.
pub(crate) fn summary(name: &str, lines: &str) -> String {
    let package = PackageParser::parse(lines.as_bytes());
    assert!(package.unreadable.is_empty(), "{:?}", package.unreadable);
    let in_channels = package
        .channels
        .values()
        .flat_map(|channel| channel.entries.keys());
    let missing: Vec<_> = in_channels
        .filter(|entry| !package.bundles.contains_key(*entry))
        .collect();
    assert!(missing.is_empty(), "entries without bundle: {missing:?}");
    let channels = package.channels.iter().map(|(channel, content)| {
        let is_default = package.default_channel.as_ref() == Some(channel);
        let mark = if is_default { "*" } else { "" };
        let prefix = format!("{name}.v");
        let entries = content
            .entries
            .keys()
            .map(|entry| entry.replacen(&prefix, "", 1));
        format!("{mark}{channel}: {}", entries.collect::<Vec<_>>().join(" "))
    });
    channels.collect::<Vec<_>>().join("; ")
}

/// Adds a property to the bundle of a version.
pub(crate) fn with_property(lines: &str, version: &str, kind: &str, value: &str) -> String {
    let name = format!(r#".v{version}","package":"#);
    let lines = lines
        .split_inclusive('\n')
        .map(|line| match line.contains(&name) {
            true => line.replace(
                r#""properties":["#,
                &format!(r#""properties":[{{"type":"{kind}","value":{value}}},"#),
            ),
            false => line.to_owned(),
        });
    lines.collect()
}

/// Returns the type and the value of a property that requires an API, a package, or some of them:
/// `API v1`, `need 1.x`, `any need 1.x | API v1`, `all API v1 | not need 1.x`. Another text is the
/// value of a constraint.
pub(crate) fn requirement(text: &str) -> (&'static str, String) {
    match text.split_once(' ') {
        Some(("API", version)) => ("olm.gvk.required", api(version)),
        Some((rule @ ("any" | "all"), parts)) => {
            let parts: Vec<String> = parts.split(" | ").map(part).collect();
            let list = format!(r#"{{"{rule}":{{"constraints":[{}]}}}}"#, parts.join(","));
            ("olm.constraint", list)
        }
        Some((package, range)) => ("olm.package.required", required(package, range)),
        None => ("olm.constraint", text.to_owned()),
    }
}

fn part(text: &str) -> String {
    match text.split_once(' ').unwrap() {
        ("API", version) => format!(r#"{{"gvk":{}}}"#, api(version)),
        ("not", other) => format!(r#"{{"not":{{"constraints":[{}]}}}}"#, part(other)),
        (package, range) => format!(r#"{{"package":{}}}"#, required(package, range)),
    }
}

/// Returns the value of a property that names an API.
pub(crate) fn api(version: &str) -> String {
    format!(r#"{{"group":"g.io","kind":"K","version":"{version}"}}"#)
}

/// Returns the value of a property that requires a package.
pub(crate) fn required(package: &str, range: &str) -> String {
    format!(r#"{{"packageName":"{package}","versionRange":"{range}"}}"#)
}

/// A catalog in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryCatalog {
    pub(crate) name: String,
    pub(crate) lines: BTreeMap<String, String>,
    pub(crate) reads: Vec<String>,
}

impl MemoryCatalog {
    pub(crate) fn new(packages: &[(&str, &str)]) -> Self {
        let lines = packages
            .iter()
            .map(|(name, lines)| ((*name).to_owned(), (*lines).to_owned()));
        Self {
            lines: lines.collect(),
            ..Self::default()
        }
    }
}

impl PackageSource for MemoryCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    fn packages(&self) -> Vec<String> {
        self.lines.keys().cloned().collect()
    }

    fn has(&self, package: &str) -> bool {
        self.lines.contains_key(package)
    }

    fn read(&mut self, package: &str) -> Result<Box<dyn ReadSeek>, ReadError> {
        self.reads.push(package.to_owned());
        let lines = self.lines.get(package).ok_or("no such package")?;
        Ok(Box::new(Cursor::new(lines.clone().into_bytes())))
    }
}

/// A composed catalog in memory.
pub(crate) struct ComposedCatalog {
    /// Lines of each package.
    pub(crate) packages: BTreeMap<String, String>,
    /// Number of the input of each package that is its whole shard.
    pub(crate) shards: BTreeMap<String, usize>,
    pub(crate) explanation: Explanation,
}

impl ComposedCatalog {
    /// Returns the packages with their channels, and then `more`, with `|` between.
    pub(crate) fn text(&self, more: &[String]) -> String {
        let packages = self.packages.iter();
        let packages = packages.map(|(name, lines)| format!("{name} {}", summary(name, lines)));
        packages
            .chain(more.iter().cloned())
            .collect::<Vec<_>>()
            .join(" | ")
    }

    /// Returns the decisions, such as `true p.v1.0.0 head of c`.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let decisions = self.explanation.decisions.iter().flatten();
        decisions
            .map(|decision| format!("{} {} {}", decision.kept, decision.bundle, decision.reason))
            .collect()
    }
}

/// Composes catalogs: inputs, then additions.
pub(crate) fn compose(
    yaml: &str,
    catalogs: &mut [MemoryCatalog],
) -> Result<ComposedCatalog, ComposeError> {
    compose_within(yaml, catalogs, &Budget::default())
}

/// Composes catalogs within a budget. Each package is read once, or twice if it may be taken along.
pub(crate) fn compose_within(
    yaml: &str,
    catalogs: &mut [MemoryCatalog],
    budget: &Budget,
) -> Result<ComposedCatalog, ComposeError> {
    let composition: Composition = serde_saphyr::from_str(yaml).unwrap();
    for (name, catalog) in composition.names().zip(&mut *catalogs) {
        name.clone_into(&mut catalog.name);
    }
    let (mut packages, mut shards) = (BTreeMap::new(), BTreeMap::new());
    let mut explanation = Explanation::with_decisions();
    let mut keep = |name: &str, content: ComposedContent<'_>| {
        let lines = match content {
            ComposedContent::Shard { input } => {
                shards.insert(name.to_owned(), input);
                String::new()
            }
            ComposedContent::Lines(lines) => std::io::read_to_string(lines)?,
        };
        assert_eq!(
            packages.insert(name.to_owned(), lines),
            None,
            "{name} is written once"
        );
        Ok(())
    };
    compose::compose(&composition, catalogs, &mut explanation, &mut keep, budget)?;
    for (name, input) in &shards {
        packages.insert(name.clone(), catalogs[*input].lines[name].clone());
    }
    for MemoryCatalog { reads, .. } in catalogs {
        let is_once = reads.iter().collect::<BTreeSet<_>>().len() == reads.len();
        assert!(
            is_once || composition.dependencies == DependencyRule::Include,
            "{reads:?}"
        );
    }
    Ok(ComposedCatalog {
        packages,
        shards,
        explanation,
    })
}
