//! Upgrades that a channel offers: by `replaces`, `skips` and `skipRange`, as OLM reads them.

mod fewest;
mod first;
mod ranges;
mod starts;
mod way;

use std::collections::HashMap;

use semver::Version;
use serde::Serialize;
use work::{Budget, OverBudget};

pub use self::fewest::FewestSteps;
pub use self::first::{EntryHits, FirstSteps, WayHit};
use self::ranges::RangeIndex;
pub use self::starts::UpgradeStarts;
pub use self::way::UpgradeWay;
use crate::version::{VersionSpan, comparable_version};
use crate::{Channel, ChannelEntry, Package, VersionRange};

/// Upgrade graph of a channel that may be broken: every upgrade between two of its entries, and
/// from bundles that it only names.
///
/// ```
/// use olm::{PackageParser, UpgradeGraph, UpgradeStep};
/// use work::Budget;
///
/// let package = PackageParser::parse(
///     br#"{"entries":[{"name":"db.v1"},{"name":"db.v2","replaces":"db.v1"}],"name":"stable","schema":"olm.channel"}"#,
/// );
/// let budget = Budget::default();
/// let graph = UpgradeGraph::new(&package, &package.channels["stable"], &budget).unwrap();
/// let start = UpgradeStep::start("db.v1", None);
/// let way = graph.fewest_steps(&start, &budget).unwrap().to("db.v2").unwrap();
/// assert_eq!(way[0].bundle, "db.v2");
/// ```
#[derive(Debug)]
pub struct UpgradeGraph<'a> {
    /// Entries in the order of preference.
    pub entries: Vec<UpgradeEntry<'a>>,
    /// Numbers of entries by their bundle.
    numbers: HashMap<&'a str, usize>,
    /// Numbers of entries, in ascending order, by the bundle that they replace or skip.
    updating: HashMap<&'a str, Vec<usize>>,
    /// Ranges of all entries.
    ranges: RangeIndex,
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
    /// Bundle of the entry as the start of a step.
    stop: WayStop<'a>,
    /// Versions that it skips. A range that OLM cannot read has none.
    range: Option<VersionRange>,
}

/// Bundle from which a step starts.
#[derive(Debug)]
struct WayStop<'a> {
    bundle: &'a str,
    /// Version without build metadata.
    version: Option<Version>,
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
    pub fn labels<'s>(steps: impl IntoIterator<Item = &'s Self>) -> String {
        let labels: Vec<&str> = steps.into_iter().map(Self::label).collect();
        labels.join(" -> ")
    }
}

impl<'a> WayStop<'a> {
    fn new(bundle: &'a str, version: Option<&str>) -> Self {
        Self {
            bundle,
            version: version.and_then(comparable_version),
        }
    }

    fn of_step(step: &'a UpgradeStep) -> Self {
        Self::new(&step.bundle, step.version.as_deref())
    }
}

impl<'a> UpgradeEntry<'a> {
    fn new(
        package: &'a Package,
        name: &'a str,
        entry: &'a ChannelEntry,
        budget: &Budget,
    ) -> Result<Self, OverBudget> {
        let range = entry.skip_range.as_deref();
        budget.charge_bytes(name.len() + range.map_or(0, str::len))?;
        let version = package.version_of(name);
        Ok(Self {
            name,
            version,
            entry,
            stop: WayStop::new(name, version),
            range: range.and_then(VersionRange::parse),
        })
    }

    /// Returns the intervals of its range, in ascending order.
    fn intervals(&self) -> &[VersionSpan] {
        self.range.as_ref().map_or(&[], VersionRange::intervals)
    }
}

impl<'a> UpgradeGraph<'a> {
    /// Reads a channel with all its entries, the newest first. Takes n log n steps for n bytes.
    ///
    /// # Errors
    /// A budget that is used up.
    pub fn new(
        package: &'a Package,
        channel: &'a Channel,
        budget: &Budget,
    ) -> Result<Self, OverBudget> {
        let mut entries = Vec::with_capacity(channel.entries.len());
        for (name, entry) in &channel.entries {
            entries.push(UpgradeEntry::new(package, name, entry, budget)?);
        }
        // Stable: by name where versions are equal.
        entries.sort_by(|one, other| other.stop.version.cmp(&one.stop.version));
        Self::of(entries, budget)
    }

    /// Reads a channel with these entries only, in this order. Names that are no entries are left
    /// out.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn in_order(
        package: &'a Package,
        channel: &'a Channel,
        order: &[&str],
        budget: &Budget,
    ) -> Result<Self, OverBudget> {
        let mut entries = Vec::with_capacity(order.len());
        for name in order {
            if let Some((name, entry)) = channel.entries.get_key_value(*name) {
                entries.push(UpgradeEntry::new(package, name, entry, budget)?);
            }
        }
        Self::of(entries, budget)
    }

    fn of(entries: Vec<UpgradeEntry<'a>>, budget: &Budget) -> Result<Self, OverBudget> {
        let mut numbers = HashMap::with_capacity(entries.len());
        let mut updating: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, entry) in entries.iter().enumerate() {
            numbers.insert(entry.name, number);
            for bundle in entry.entry.updated() {
                budget.charge_bytes(bundle.len())?;
                updating.entry(bundle).or_default().push(number);
            }
        }
        Ok(Self {
            numbers,
            updating,
            ranges: RangeIndex::new(&entries, budget)?,
            entries,
        })
    }

    /// Returns the steps from a bundle to each entry that updates it, in the order of entries. A
    /// range may hold the version of its own entry.
    pub fn updates(&self, from: &UpgradeStep) -> Vec<UpgradeStep> {
        let stop = WayStop::of_step(from);
        let mut numbers = self.updating.get(stop.bundle).cloned().unwrap_or_default();
        if let Some(version) = &stop.version {
            for node in self.ranges.path(version) {
                numbers.extend_from_slice(&self.ranges.nodes()[node]);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
            .into_iter()
            .map(|number| self.step(&stop, number))
            .collect()
    }

    /// Returns true for a bundle that is an entry, or that an entry replaces or skips.
    fn names(&self, bundle: &str) -> bool {
        self.numbers.contains_key(bundle) || self.updating.contains_key(bundle)
    }

    /// Returns the first entry that updates a bundle.
    fn first_update(&self, stop: &WayStop<'_>) -> Option<usize> {
        let named = self.updating.get(stop.bundle).and_then(|all| all.first());
        let version = stop.version.as_ref();
        let ranged = version.and_then(|version| self.ranges.first(version));
        named.copied().into_iter().chain(ranged).min()
    }

    /// Returns the step from a bundle to an entry that updates it.
    fn step(&self, stop: &WayStop<'_>, number: usize) -> UpgradeStep {
        let entry = &self.entries[number];
        let mut by = Vec::new();
        if entry.entry.skips.contains(stop.bundle) {
            by.push(UpgradeRule::Skips);
        }
        if let Some(range) = &entry.range
            && let Some(version) = &stop.version
            && range.contains(version)
        {
            by.push(UpgradeRule::SkipRange);
        }
        if entry.entry.replaces.as_deref() == Some(stop.bundle) {
            by.push(UpgradeRule::Replaces);
        }
        UpgradeStep {
            bundle: entry.name.to_owned(),
            version: entry.version.map(str::to_owned),
            by,
        }
    }

    /// Finds the fewest steps from a bundle to all entries.
    ///
    /// # Errors
    /// A budget that is used up.
    pub fn fewest_steps<'g>(
        &'g self,
        from: &'g UpgradeStep,
        budget: &Budget,
    ) -> Result<FewestSteps<'g, 'a>, OverBudget> {
        FewestSteps::new(self, from, budget)
    }
}

#[cfg(test)]
mod tests;
