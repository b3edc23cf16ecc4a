use std::{collections::BTreeMap, slice};

use model::SearchPackage;
use serde::Serialize;

use super::words::fold;

/// Maximum number of values of one facet.
const VALUES_MAX: usize = 50;

/// Property of a Package by which packages are filtered and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SearchFacet {
    /// Its name, by which packages are not counted.
    Package,
    /// Categories, such as `Database`. A Package may have several.
    Category,
    /// Company or community that provides it.
    Provider,
    /// Capability level, such as `Seamless Upgrades`.
    Capability,
    /// CPUs that it supports, in Go's words, such as `arm64`.
    Arch,
}

/// Values that a Package must have, each one of those of the facet, without regard to case and
/// accents.
pub type SearchFilter = BTreeMap<SearchFacet, String>;

/// Numbers of the Packages that were found, by their values: the most frequent ones first, at most
/// 50 of each facet.
pub type FacetCounts = BTreeMap<SearchFacet, Vec<FacetCount>>;

/// Number of the Packages with one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FacetCount {
    /// Value of the facet.
    pub value: String,
    /// Number of the Packages that have it.
    pub count: u64,
}

impl SearchFacet {
    fn values(self, package: &SearchPackage) -> &[String] {
        match self {
            Self::Package => slice::from_ref(&package.name),
            Self::Category => &package.categories,
            Self::Provider => slice::from_ref(&package.provider),
            Self::Capability => slice::from_ref(&package.capability),
            Self::Arch => &package.arches,
        }
    }
}

/// Returns true if a Package has all values of a filter, which are folded.
pub(super) fn accepts(folded: &SearchFilter, package: &SearchPackage) -> bool {
    folded.iter().all(|(facet, wanted)| {
        let values = facet.values(package);
        values.iter().any(|value| *wanted == fold(value))
    })
}

/// Counts the values of Packages by all facets but their names.
pub(super) fn count(packages: &[&SearchPackage]) -> FacetCounts {
    use SearchFacet::{Arch, Capability, Category, Provider};

    [Category, Provider, Capability, Arch]
        .map(|facet| (facet, count_values(facet, packages)))
        .into()
}

/// Counts the values of Packages by one facet, the most frequent ones first.
fn count_values(facet: SearchFacet, packages: &[&SearchPackage]) -> Vec<FacetCount> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let values = packages.iter().flat_map(|package| facet.values(package));
    for value in values.filter(|value| !value.is_empty()) {
        *counts.entry(value).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(value, count)| FacetCount {
        value: value.to_owned(),
        count,
    });
    let mut counts: Vec<FacetCount> = counts.collect();
    // Stable, so that equal ones stay in byte order.
    counts.sort_by_key(|value| std::cmp::Reverse(value.count));
    counts.truncate(VALUES_MAX);
    counts
}
