use std::collections::BTreeMap;

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
    /// Returns the filter in the form in which values are compared.
    pub(super) fn folded(&self) -> Self {
        let folded = |value: &Option<String>| value.as_deref().map(fold);
        Self {
            package: folded(&self.package),
            category: folded(&self.category),
            provider: folded(&self.provider),
            capability: folded(&self.capability),
            arch: folded(&self.arch),
        }
    }

    /// Returns true if a Package has all values of this filter, which is folded.
    pub(super) fn accepts(&self, package: &SearchPackage) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| *wanted == fold(value));
        let has = |wanted: &Option<String>, values: &[String]| {
            let wanted = wanted.as_ref();
            wanted.is_none_or(|wanted| values.iter().any(|value| *wanted == fold(value)))
        };
        is(&self.package, &package.name)
            && has(&self.category, &package.categories)
            && is(&self.provider, &package.provider)
            && is(&self.capability, &package.capability)
            && has(&self.arch, &package.arches)
    }
}

impl SearchFacets {
    pub(super) fn of<'p>(packages: impl Iterator<Item = &'p SearchPackage>) -> Self {
        let [mut categories, mut providers, mut capabilities, mut arches] = [const { BTreeMap::new() }; 4];
        for package in packages {
            count(&mut categories, &package.categories);
            count(&mut providers, [&package.provider]);
            count(&mut capabilities, [&package.capability]);
            count(&mut arches, &package.arches);
        }
        Self {
            category: most_frequent(categories),
            provider: most_frequent(providers),
            capability: most_frequent(capabilities),
            arch: most_frequent(arches),
        }
    }
}

fn count<'p>(counts: &mut BTreeMap<&'p str, u64>, values: impl IntoIterator<Item = &'p String>) {
    for value in values.into_iter().filter(|value| !value.is_empty()) {
        *counts.entry(value).or_default() += 1;
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
