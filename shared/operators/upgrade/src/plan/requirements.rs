//! Packages and APIs that operators require of each other.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use olm::{Bundle, Constraint, RequiredPackage, UpgradeStep, VersionRange, comparable_version};
use semver::Version;
use work::{Budget, OverBudget};

use crate::plan::{PlanCatalog, PlanInput, PlannedOperator};
use crate::{Bounds, Exceeded};

/// Packages and APIs that the operators of a plan provide, now or in the end.
struct Provided<'a> {
    apis: HashSet<&'a str>,
    /// Versions by their package.
    versions: HashMap<&'a str, BTreeSet<Version>>,
    budget: &'a Budget,
}

/// Sets what the last bundle of each operator requires and no operator provides.
pub(super) fn set_missing(
    rows: &mut [PlannedOperator],
    input: PlanInput<'_>,
    bounds: &Bounds,
) -> Result<(), Exceeded> {
    let budget = &bounds.budget;
    let mut missing: HashMap<_, BTreeSet<String>> = HashMap::new();
    let provided = Provided::new(rows, input, budget)?;
    for row in &*rows {
        let key = (row.installed.package.clone(), row.last.bundle.clone());
        if let Entry::Vacant(place) = missing.entry(key) {
            place.insert(provided.missing(row, input)?);
        }
    }
    // What was asked after the end of the budget has no answer that counts.
    budget.charge(0)?;
    for row in rows {
        let key = (row.installed.package.clone(), row.last.bundle.clone());
        let texts = &missing[&key];
        bounds.answer(texts.iter().map(String::len).sum())?;
        row.missing.clone_from(texts);
    }
    Ok(())
}

impl<'a> Provided<'a> {
    fn new(
        rows: &'a [PlannedOperator],
        input: PlanInput<'a>,
        budget: &'a Budget,
    ) -> Result<Self, OverBudget> {
        let mut provided = Self {
            apis: HashSet::new(),
            versions: HashMap::new(),
            budget,
        };
        let mut known = HashSet::new();
        for row in rows {
            let package = row.installed.package.as_str();
            for step in [row.installed.step(), row.last.clone()] {
                let versions = provided.versions.entry(package).or_default();
                versions.extend(comparable_version(step.label()));
                if known.insert((package, step.bundle.clone())) {
                    for bundle in bundles(input, package, &step) {
                        budget.charge(1 + bundle.provides.len() as u64)?;
                        let apis = bundle.provides.iter();
                        provided.apis.extend(apis.map(String::as_str));
                    }
                }
            }
        }
        Ok(provided)
    }

    /// Returns what the last bundle of an operator requires, and no operator provides.
    fn missing(
        &self,
        row: &PlannedOperator,
        input: PlanInput<'_>,
    ) -> Result<BTreeSet<String>, OverBudget> {
        let mut missing = BTreeSet::new();
        for bundle in bundles(input, &row.installed.package, &row.last) {
            for json in &bundle.requires {
                self.budget.charge_bytes(json.len())?;
                if let Some(constraint) = Constraint::parse(json)
                    && !self.meets(&constraint)
                {
                    missing.insert(constraint.to_string());
                }
            }
        }
        Ok(missing)
    }

    /// Returns true if a constraint is met, or the budget is used up.
    fn meets(&self, constraint: &Constraint) -> bool {
        constraint.is_met(&|one| {
            one.gvk
                .as_ref()
                .is_none_or(|api| self.apis.contains(&*api.text()))
                && one
                    .package
                    .as_ref()
                    .is_none_or(|package| self.has_package(package))
        })
    }

    fn has_package(&self, required: &RequiredPackage) -> bool {
        let Some(versions) = self.versions.get(&*required.package_name) else {
            return false;
        };
        let Some(range) = VersionRange::parse(&required.version_range) else {
            return false;
        };
        let mut intervals = range.intervals().iter();
        intervals.any(|interval| {
            let is_over = self.budget.charge(1).is_err();
            is_over || versions.range(interval.clone()).next().is_some()
        })
    }
}

/// Returns the bundles of a step in all catalogs.
fn bundles<'a>(
    input: PlanInput<'a>,
    package: &str,
    step: &UpgradeStep,
) -> impl Iterator<Item = &'a Bundle> {
    let catalogs: [&[PlanCatalog]; 2] = [input.from, input.to];
    let packages = catalogs
        .into_iter()
        .flatten()
        .filter_map(move |catalog| catalog.packages.get(package));
    packages.filter_map(move |package| package.bundles.get(&step.bundle))
}
