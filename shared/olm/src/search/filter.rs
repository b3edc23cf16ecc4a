use std::{collections::BTreeMap, slice};

use model::SearchPackage;
use serde::Serialize;

use super::words::fold;

/// Maximum number of values of one facet.
const VALUES_MAX: usize = 50;

/// Values that a Package must have, without regard to case and accents. Those that are `None` do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// Name of the Package.
    pub package: Option<String>,
    /// One of its categories.
    pub category: Option<String>,
    /// Its provider.
    pub provider: Option<String>,
    /// Its capability level.
    pub capability: Option<String>,
    /// One of its CPUs.
    pub arch: Option<String>,
}

/// Numbers of the Packages that were found, by their values: the most frequent ones first, at most 50 of each facet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SearchFacets {
    /// By category.
    pub category: Vec<FacetCount>,
    /// By provider.
    pub provider: Vec<FacetCount>,
    /// By capability level.
    pub capability: Vec<FacetCount>,
    /// By CPU.
    pub arch: Vec<FacetCount>,
}

/// Number of the Packages with one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FacetCount {
    /// Value of the facet.
    pub value: String,
    /// Number of the Packages that have it.
    pub count: u64,
}

impl SearchFilter {
    /// Returns the wanted values in the order of [`values`] and in the form in which they are compared.
    pub(super) fn folded(&self) -> [Option<String>; 5] {
        let wanted = [
            &self.package,
            &self.category,
            &self.provider,
            &self.capability,
            &self.arch,
        ];
        wanted.map(|value| value.as_deref().map(fold))
    }
}

/// Returns the values of a Package that a filter may ask for.
fn values(package: &SearchPackage) -> [&[String]; 5] {
    [
        slice::from_ref(&package.name),
        &package.categories,
        slice::from_ref(&package.provider),
        slice::from_ref(&package.capability),
        &package.arches,
    ]
}

/// Returns true if a Package has all values of a filter.
pub(super) fn accepts(folded: &[Option<String>; 5], package: &SearchPackage) -> bool {
    folded.iter().zip(values(package)).all(|(wanted, values)| {
        let wanted = wanted.as_ref();
        wanted.is_none_or(|wanted| values.iter().any(|value| *wanted == fold(value)))
    })
}

impl SearchFacets {
    pub(super) fn of<'p>(packages: impl Iterator<Item = &'p SearchPackage>) -> Self {
        let mut counts = [const { BTreeMap::new() }; 5];
        for package in packages {
            for (counts, values) in counts.iter_mut().zip(values(package)) {
                for value in values.iter().filter(|value| !value.is_empty()) {
                    *counts.entry(value.as_str()).or_default() += 1;
                }
            }
        }
        let [_, category, provider, capability, arch] = counts.map(most_frequent);
        Self {
            category,
            provider,
            capability,
            arch,
        }
    }
}

fn most_frequent(counts: BTreeMap<&str, u64>) -> Vec<FacetCount> {
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
