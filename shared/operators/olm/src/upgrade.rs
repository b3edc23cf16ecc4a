//! Upgrades that a channel offers: by `replaces`, `skips` and `skipRange`, as OLM reads them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::iter;

use semver::Version;
use serde::Serialize;

use crate::{
    Channel, ChannelEntry, GraphEntry, GraphFault, Package, VersionRange, graph::chain,
    version::parse_version,
};

/// Upgrade graph of a channel that may be broken: every upgrade between two of its entries, and
/// from bundles that it only names.
///
/// ```
/// use olm::{PackageParser, UpgradeGraph, UpgradeStep};
///
/// let package = PackageParser::parse(
///     br#"{"entries":[{"name":"db.v1"},{"name":"db.v2","replaces":"db.v1"}],"name":"stable","schema":"olm.channel"}"#,
/// );
/// let graph = UpgradeGraph::new(&package, &package.channels["stable"]);
/// let way = graph.fewest_steps(&UpgradeStep::start("db.v1", None), "db.v2").unwrap();
/// assert_eq!(way[0].bundle, "db.v2");
/// ```
#[derive(Debug)]
pub struct UpgradeGraph<'a> {
    /// Entries in the order of preference.
    pub entries: Vec<UpgradeEntry<'a>>,
    /// Numbers of entries by the bundle that they replace or skip.
    updating: HashMap<&'a str, Vec<usize>>,
    /// Numbers of entries with a `skipRange`.
    ranged: Vec<usize>,
}

/// Entry of a channel with its version.
#[derive(Debug)]
pub struct UpgradeEntry<'a> {
    /// Name of the bundle.
    pub name: &'a str,
    /// Version as the catalog writes it. `None` for an entry without a bundle.
    pub version: Option<&'a str>,
    /// Entry of the catalog.
    pub entry: &'a ChannelEntry,
    /// Versions that it skips. A range that OLM cannot read has none.
    range: Option<VersionRange>,
}

/// Bundle that is installed on a way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeStep {
    /// Name of the bundle; empty for a start of which only the version is known.
    pub bundle: String,
    /// Version of the bundle, as the catalog writes it.
    pub version: Option<String>,
    /// Fields of its entry that offer the step; none for a start.
    pub by: Vec<UpgradeRule>,
}

/// Field of an entry that offers an upgrade. In the order in which `opm alpha render-graph` draws
/// them.
// As text it is the word of `opm alpha render-graph`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "camelCase")]
pub enum UpgradeRule {
    /// The entry names the bundle in `skips`.
    #[strum(to_string = "skip")]
    Skips,
    /// The version is in the `skipRange` of the entry.
    #[strum(to_string = "skipRange")]
    SkipRange,
    /// The entry names the bundle in `replaces`.
    #[strum(to_string = "replace")]
    Replaces,
}

/// Reads a version as OLM compares it: without build metadata. A leading `v` is allowed, as people
/// write it.
pub fn comparable_version(text: &str) -> Option<Version> {
    parse_version(text.strip_prefix('v').unwrap_or(text))
}

impl Package {
    /// Returns the version of a bundle, as the catalog writes it.
    pub fn version_of(&self, bundle: &str) -> Option<&str> {
        self.bundles.get(bundle)?.version.as_deref()
    }

    /// Returns the name of the bundle with a version.
    pub fn bundle_of(&self, version: &str) -> Option<&str> {
        let find = |fits: &dyn Fn(&str) -> bool| {
            let mut names = self.bundles.keys();
            names.find(|name| self.version_of(name).is_some_and(fits))
        };
        let comparable = comparable_version(version);
        let is_equal =
            |other: &str| comparable.is_some() && comparable_version(other) == comparable;
        // As it is written first: two versions may differ in build metadata alone.
        let found = find(&|other| other == version).or_else(|| find(&is_equal));
        found.map(String::as_str)
    }
}

impl UpgradeStep {
    /// Returns the start of a way.
    pub fn start(bundle: &str, version: Option<&str>) -> Self {
        Self {
            bundle: bundle.to_owned(),
            version: version.map(str::to_owned),
            by: Vec::new(),
        }
    }

    /// Returns the version, or else the name of the bundle, for people.
    pub fn label(&self) -> &str {
        self.version.as_deref().unwrap_or(&self.bundle)
    }

    /// Returns the labels of steps in their order, for people.
    pub fn labels(steps: &[Self]) -> String {
        steps
            .iter()
            .map(Self::label)
            .collect::<Vec<_>>()
            .join(" -> ")
    }
}

impl<'a> UpgradeEntry<'a> {
    fn new(package: &'a Package, name: &'a str, entry: &'a ChannelEntry) -> Self {
        Self {
            name,
            version: package.version_of(name),
            entry,
            range: entry.skip_range.as_deref().and_then(VersionRange::parse),
        }
    }

    /// Returns the step from a bundle to this entry; `None` if the entry does not update it.
    fn step(&self, bundle: &str, version: Option<&Version>) -> Option<UpgradeStep> {
        let range = self.range.as_ref().zip(version);
        let is_in_range = range.is_some_and(|(range, version)| range.contains(version));
        let rules = [
            (UpgradeRule::Skips, self.entry.skips.contains(bundle)),
            (UpgradeRule::SkipRange, is_in_range),
            (
                UpgradeRule::Replaces,
                self.entry.replaces.as_deref() == Some(bundle),
            ),
        ];
        let rules = rules.into_iter().filter(|(_, holds)| *holds);
        let by: Vec<UpgradeRule> = rules.map(|(rule, _)| rule).collect();
        let (bundle, version) = (self.name.to_owned(), self.version.map(str::to_owned));
        (!by.is_empty()).then_some(UpgradeStep {
            bundle,
            version,
            by,
        })
    }
}

impl<'a> UpgradeGraph<'a> {
    /// Reads a channel with all its entries, the newest first.
    pub fn new(package: &'a Package, channel: &'a Channel) -> Self {
        let entries = channel.entries.iter();
        let entries = entries.map(|(name, entry)| UpgradeEntry::new(package, name, entry));
        let mut entries: Vec<UpgradeEntry<'a>> = entries.collect();
        // Stable: by name where versions are equal.
        entries.sort_by_cached_key(|entry| Reverse(entry.version.and_then(comparable_version)));
        Self::of(entries)
    }

    fn of(entries: Vec<UpgradeEntry<'a>>) -> Self {
        let (mut updating, mut ranged) = (HashMap::<_, Vec<usize>>::new(), Vec::new());
        for (at, UpgradeEntry { entry, range, .. }) in entries.iter().enumerate() {
            for bundle in entry.updated() {
                updating.entry(bundle).or_default().push(at);
            }
            ranged.extend(range.as_ref().map(|_| at));
        }
        Self {
            entries,
            updating,
            ranged,
        }
    }

    /// Reads a channel with the entries to which OLM v0 updates, in its order: from the head along
    /// `replaces`, without those that are skipped.
    ///
    /// # Errors
    /// A channel that OLM v0 refuses.
    // By `sortChannel` of operator-lifecycle-manager v0.38.0 (`pkg/controller/registry/resolver`).
    pub fn of_olm_v0(package: &'a Package, channel: &'a Channel) -> Result<Self, GraphFault<'a>> {
        let entries: Vec<GraphEntry<'_>> = channel.graph_entries().collect();
        let skipped: HashSet<&str> = entries
            .iter()
            .flat_map(|entry| &entry.skips)
            .copied()
            .collect();
        let chain = chain(&entries, |_| false)?.into_iter();
        let entries = chain.filter(|name| !skipped.contains(name));
        let entries = entries.filter_map(|name| channel.entries.get_key_value(name));
        let entries = entries.map(|(name, entry)| UpgradeEntry::new(package, name, entry));
        Ok(Self::of(entries.collect()))
    }

    /// Returns the steps from a bundle to each entry that updates it. A range may hold the version
    /// of its own entry.
    pub fn updates(&self, from: &UpgradeStep) -> impl Iterator<Item = UpgradeStep> {
        let version = from.version.as_deref().and_then(comparable_version);
        let named = self.updating.get(&*from.bundle).into_iter().flatten();
        let candidates: BTreeSet<usize> = named.chain(&self.ranged).copied().collect();
        let steps = move |at: usize| self.entries[at].step(&from.bundle, version.as_ref());
        candidates.into_iter().filter_map(steps)
    }

    /// Returns the fewest steps from a bundle to an entry, without the start. Of several ways it is
    /// the one whose first steps lead to the newest versions. `None` if no way leads there.
    pub fn fewest_steps(&self, from: &UpgradeStep, to: &str) -> Option<Vec<UpgradeStep>> {
        // The start of the first step to each bundle.
        let mut before: HashMap<String, UpgradeStep> = HashMap::new();
        let mut open = VecDeque::from([from.clone()]);
        while let Some(at) = open.pop_front() {
            if at.bundle == to {
                let way = iter::successors(Some(at), |step| before.remove(&step.bundle));
                let mut way: Vec<UpgradeStep> = way.collect();
                way.reverse();
                return Some(way.split_off(1));
            }
            for step in self.updates(&at) {
                if step.bundle != from.bundle && !before.contains_key(&step.bundle) {
                    before.insert(step.bundle.clone(), at.clone());
                    open.push_back(step);
                }
            }
        }
        None
    }

    /// Returns the steps that follow if each leads to the first entry that updates the one before,
    /// without the start.
    pub fn first_steps(&self, from: &UpgradeStep) -> Vec<UpgradeStep> {
        let mut way = vec![from.clone()];
        let mut passed = HashSet::from([from.bundle.clone()]);
        while let Some(step) = way.last().and_then(|last| self.updates(last).next()) {
            // A range may hold the version of its own entry, and entries that update each other
            // would be installed in turn.
            if !passed.insert(step.bundle.clone()) {
                break;
            }
            way.push(step);
        }
        way.split_off(1)
    }
}

#[cfg(test)]
mod tests;
