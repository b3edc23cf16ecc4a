//! Upgrades that a channel offers: by `replaces`, `skips` and `skipRange`, as OLM reads them.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
};

use semver::{BuildMetadata, Version};
use serde::Serialize;

use crate::{Channel, ChannelEntry, Package, VersionRange, version::parse_version};

/// Upgrade graph of a channel that may be broken: every upgrade between two of its entries, and from bundles that it only names.
///
/// ```
/// use catalog_mirror_olm::{PackageParser, UpgradeGraph, UpgradeStart};
///
/// let package = PackageParser::parse(
///     br#"{"entries":[{"name":"db.v1"},{"name":"db.v2","replaces":"db.v1"}],"name":"stable","schema":"olm.channel"}"#,
/// );
/// let graph = UpgradeGraph::new(&package, &package.channels["stable"]);
/// let way = graph.fewest_steps(&UpgradeStart::of_bundle(&package, "db.v1"), "db.v2").unwrap();
/// assert_eq!(way[0].name, "db.v2");
/// ```
#[derive(Debug)]
pub struct UpgradeGraph<'a> {
    entries: Vec<UpgradeEntry<'a>>,
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
    /// Version without build metadata, which is not compared. `None` for an entry without a bundle, or with another text.
    pub version: Option<Version>,
    /// Entry of the catalog.
    pub entry: &'a ChannelEntry,
    /// Versions that it skips. A range that OLM cannot read has none.
    range: Option<VersionRange>,
}

/// Bundle from which an upgrade starts. It need not be in the catalog any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradeStart<'a> {
    /// Name of the bundle, if it is known.
    pub name: Option<&'a str>,
    /// Version without build metadata, if it is known.
    pub version: Option<Version>,
}

/// Field of an entry that offers an upgrade. In the order in which `opm alpha render-graph` draws them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum UpgradeRule {
    /// The entry names the bundle in `skips`.
    Skips,
    /// The version is in the `skipRange` of the entry.
    SkipRange,
    /// The entry names the bundle in `replaces`.
    Replaces,
}

/// One upgrade that a channel offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UpgradeEdge<'a> {
    /// Name of the bundle that is updated. The channel need not have it.
    pub from: &'a str,
    /// Name of the entry that updates it.
    pub to: &'a str,
    /// Field of that entry.
    pub rule: UpgradeRule,
}

/// Channel without the one chain of `replaces` along which OLM v0 orders its entries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// Each entry is replaced or skipped by another one.
    #[error("no entry is a head")]
    NoHead,
    /// Several entries are neither replaced nor skipped.
    #[error("it has {} heads: {}", .0.len(), .0.join(", "))]
    Heads(Vec<String>),
    /// The chain comes back to an earlier entry.
    #[error("its entries replace each other in a cycle at {0}")]
    Cycle(String),
}

impl UpgradeRule {
    /// Returns the word of `opm alpha render-graph`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skips => "skip",
            Self::SkipRange => "skipRange",
            Self::Replaces => "replace",
        }
    }
}

/// Reads a version as OLM compares it: without build metadata. A leading `v` is allowed, as people write it.
pub fn comparable_version(text: &str) -> Option<Version> {
    let version = parse_version(text.strip_prefix('v').unwrap_or(text))?;
    Some(Version {
        build: BuildMetadata::EMPTY,
        ..version
    })
}

impl<'a> UpgradeStart<'a> {
    /// Returns a bundle by its name.
    pub fn of_bundle(package: &Package, name: &'a str) -> Self {
        Self {
            name: Some(name),
            version: package.version_of(name),
        }
    }
}

impl Package {
    /// Returns the version of a bundle, without build metadata.
    pub fn version_of(&self, bundle: &str) -> Option<Version> {
        comparable_version(self.bundles.get(bundle)?.version.as_deref()?)
    }
}

impl<'a> UpgradeEntry<'a> {
    /// Returns the fields by which this entry updates a bundle.
    pub fn rules(&self, from: &UpgradeStart<'_>) -> impl Iterator<Item = UpgradeRule> {
        let is_skipped = from.name.is_some_and(|name| self.entry.skips.contains(name));
        let is_replaced = from.name.is_some() && from.name == self.entry.replaces.as_deref();
        let rules = [
            (UpgradeRule::Skips, is_skipped),
            (UpgradeRule::SkipRange, self.skips_version(from.version.as_ref())),
            (UpgradeRule::Replaces, is_replaced),
        ];
        rules.into_iter().filter_map(|(rule, holds)| holds.then_some(rule))
    }

    fn skips_version(&self, version: Option<&Version>) -> bool {
        let range = self.range.as_ref();
        range
            .zip(version)
            .is_some_and(|(range, version)| range.contains(version))
    }

    /// Returns this entry as the start of the next step.
    fn start(&self) -> UpgradeStart<'a> {
        UpgradeStart {
            name: Some(self.name),
            version: self.version.clone(),
        }
    }
}

impl<'a> UpgradeGraph<'a> {
    /// Reads a channel of a package.
    pub fn new(package: &Package, channel: &'a Channel) -> Self {
        let entries = channel.entries.iter().map(|(name, entry)| UpgradeEntry {
            name,
            version: package.version_of(name),
            entry,
            range: entry.skip_range.as_ref().and_then(|range| range.parse().ok()),
        });
        let mut entries: Vec<UpgradeEntry<'a>> = entries.collect();
        // The newest first. Stable: by name where versions are equal.
        entries.sort_by_key(|entry| Reverse(entry.version.clone()));
        let mut updating: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, UpgradeEntry { entry, .. }) in entries.iter().enumerate() {
            for name in entry.replaces.iter().chain(&entry.skips) {
                updating.entry(name).or_default().push(number);
            }
        }
        let ranged = entries.iter().enumerate();
        let ranged = ranged.filter(|(_, entry)| entry.range.is_some());
        Self {
            ranged: ranged.map(|(number, _)| number).collect(),
            entries,
            updating,
        }
    }

    /// Returns all entries, the newest first.
    pub fn entries(&self) -> &[UpgradeEntry<'a>] {
        &self.entries
    }

    /// Returns all upgrades, as `opm alpha render-graph` draws them: a range updates those entries whose versions are in it.
    pub fn edges(&self) -> impl Iterator<Item = UpgradeEdge<'a>> {
        self.entries.iter().flat_map(|entry| {
            let edge = |rule| {
                move |from| UpgradeEdge {
                    from,
                    to: entry.name,
                    rule,
                }
            };
            let is_skipped = |other: &&UpgradeEntry<'_>| entry.skips_version(other.version.as_ref());
            let skipped = self.entries.iter().filter(is_skipped).map(|other| other.name);
            let named = entry
                .entry
                .skips
                .iter()
                .map(String::as_str)
                .map(edge(UpgradeRule::Skips));
            let named = named.chain(skipped.map(edge(UpgradeRule::SkipRange)));
            named.chain(entry.entry.replaces.as_deref().map(edge(UpgradeRule::Replaces)))
        })
    }

    /// Returns true if an entry updates the bundle.
    pub fn has_update(&self, from: &UpgradeStart<'_>) -> bool {
        !self.update_numbers(from).is_empty()
    }

    /// Returns the numbers of the entries that update a bundle: the newest first.
    fn update_numbers(&self, from: &UpgradeStart<'_>) -> BTreeSet<usize> {
        let named = from.name.and_then(|name| self.updating.get(name));
        let numbers = named.into_iter().flatten().chain(&self.ranged).copied();
        let updates = |number: &usize| {
            let entry = &self.entries[*number];
            Some(entry.name) != from.name && entry.rules(from).next().is_some()
        };
        numbers.filter(updates).collect()
    }

    /// Returns the fewest steps from a bundle to an entry, without the start. Of several ways it is the one whose first steps lead to
    /// the newest versions. `None` if no way leads there.
    pub fn fewest_steps(&self, from: &UpgradeStart<'_>, to: &str) -> Option<Vec<&UpgradeEntry<'a>>> {
        if from.name == Some(to) {
            return Some(Vec::new());
        }
        // Entry before each that was reached, in the order in which they were.
        let mut before: HashMap<usize, Option<usize>> = HashMap::new();
        let mut open: Vec<Option<usize>> = vec![None];
        let mut next = 0;
        while let Some(&at) = open.get(next) {
            next += 1;
            let start = at.map_or_else(|| from.clone(), |number| self.entries[number].start());
            for number in self.update_numbers(&start) {
                if before.contains_key(&number) || Some(self.entries[number].name) == from.name {
                    continue;
                }
                before.insert(number, at);
                if self.entries[number].name == to {
                    let steps = std::iter::successors(Some(number), |number| before[number]);
                    let mut steps: Vec<_> = steps.map(|number| &self.entries[number]).collect();
                    steps.reverse();
                    return Some(steps);
                }
                open.push(Some(number));
            }
        }
        None
    }

    /// Returns the entries to which OLM v0 updates, in its order of preference: from the head along `replaces`, without those that are
    /// skipped.
    ///
    /// # Errors
    /// A channel that OLM v0 refuses.
    // By `sortChannel` of operator-lifecycle-manager v0.38.0 (`pkg/controller/registry/resolver`).
    pub fn chain(&self) -> Result<Vec<&UpgradeEntry<'a>>, ChainError> {
        let by_name: HashMap<&str, &UpgradeEntry<'a>> = self.entries.iter().map(|entry| (entry.name, entry)).collect();
        let heads = self
            .entries
            .iter()
            .filter(|entry| !self.updating.contains_key(entry.name));
        let head = match heads.collect::<Vec<_>>().as_slice() {
            [] => return Err(ChainError::NoHead),
            [head] => *head,
            heads => {
                return Err(ChainError::Heads(
                    heads.iter().map(|head| head.name.to_owned()).collect(),
                ));
            }
        };
        let skipped = self.entries.iter().flat_map(|entry| &entry.entry.skips);
        let skipped: HashSet<&str> = skipped.map(String::as_str).collect();
        let (mut chain, mut visited, mut next) = (Vec::new(), HashSet::new(), Some(head));
        while let Some(entry) = next {
            if !visited.insert(entry.name) {
                return Err(ChainError::Cycle(entry.name.to_owned()));
            }
            chain.push(entry);
            let replaces = entry.entry.replaces.as_deref();
            next = replaces.and_then(|name| by_name.get(name).copied());
        }
        chain.retain(|entry| !skipped.contains(entry.name));
        Ok(chain)
    }

    /// Returns the steps that OLM v0 takes from a bundle, without the start: each leads as far as an update from there does.
    ///
    /// # Errors
    /// A channel that OLM v0 refuses.
    pub fn olm_v0_steps(&self, from: &UpgradeStart<'_>) -> Result<Vec<&UpgradeEntry<'a>>, ChainError> {
        let chain = self.chain()?;
        let (mut steps, mut at) = (Vec::<&UpgradeEntry<'a>>::new(), from.clone());
        let mut passed: HashSet<&str> = from.name.into_iter().collect();
        loop {
            let mut updates = chain.iter().filter(|entry| Some(entry.name) != at.name);
            let Some(next) = updates.find(|entry| entry.rules(&at).next().is_some()) else {
                return Ok(steps);
            };
            // Entries that skip each other would be installed in turn for ever.
            if !passed.insert(next.name) {
                return Ok(steps);
            }
            steps.push(next);
            at = next.start();
        }
    }
}

#[cfg(test)]
mod tests;
