//! Requirements of bundles, and what installed operators provide.

use std::collections::{BTreeMap, BTreeSet};

use olm::{Constraint, VersionRange, comparable_version};
use semver::Version;

use crate::{PlanInput, PlannedOperator};

/// APIs and versions of packages that are installed, now or in the end.
#[derive(Default)]
pub(crate) struct Provided {
    apis: BTreeSet<String>,
    packages: BTreeMap<String, Vec<Version>>,
}

impl Provided {
    pub(crate) fn new(input: &PlanInput<'_>, operators: &[PlannedOperator]) -> Self {
        let mut provided = Self::default();
        for operator in operators {
            for bundle in [operator.bundle.as_deref(), operator.last_bundle()] {
                let bundles = input.properties(&operator.package, bundle);
                provided
                    .apis
                    .extend(bundles.flat_map(|bundle| &bundle.provides).cloned());
            }
            let versions = [operator.version.as_deref(), operator.last_version()];
            let versions = versions.into_iter().flatten().filter_map(comparable_version);
            provided
                .packages
                .entry(operator.package.clone())
                .or_default()
                .extend(versions);
        }
        provided
    }

    pub(crate) fn fulfils(&self, constraint: &Constraint) -> bool {
        let has_api = constraint
            .gvk
            .as_ref()
            .is_none_or(|gvk| self.apis.contains(&gvk.text()));
        let has_package = constraint.package.as_ref().is_none_or(|package| {
            let versions = self
                .packages
                .get(&package.package_name)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let range: Option<VersionRange> = package.version_range.parse().ok();
            range.is_some_and(|range| versions.iter().any(|version| range.contains(version)))
        });
        let all = constraint
            .all
            .iter()
            .flat_map(|list| &list.constraints)
            .all(|one| self.fulfils(one));
        let any = constraint
            .any
            .as_ref()
            .is_none_or(|list| list.constraints.iter().any(|one| self.fulfils(one)));
        let none = !constraint
            .not
            .iter()
            .flat_map(|list| &list.constraints)
            .any(|one| self.fulfils(one));
        has_api && has_package && all && any && none
    }
}
