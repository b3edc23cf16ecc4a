//! Packages and APIs that bundles provide, and those that the bundles of a composed catalog require
//! of each other.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use indexmap::IndexMap;
use model::text;
use olm::{
    BundleFields, Constraint, Gvk, RequiredPackage, VersionRange, VersionSpan, parse_version,
};
use semver::Version;
use work::Budget;

use crate::error::{TEXT_CHARS, too_large};
use crate::{ComposeError, Explanation};

/// Maximum memory for the names, versions, APIs and requirements of all bundles, in bytes.
const FACT_BYTES_MAX: usize = 128 << 20;

/// Maximum size of one requirement, in bytes. Real ones have hundreds.
const REQUIREMENT_BYTES_MAX: usize = 16 << 20;

/// Memory of a fact beside its text, in bytes.
const FACT_BYTES: usize = 100;

/// Memory of a bundle that has a requirement, in bytes: a name in a sorted set.
const REQUIRING_BYTES: usize = 32;

/// Version, APIs and requirements of one bundle.
#[derive(Debug)]
pub(crate) struct BundleDependencies {
    pub(crate) name: Rc<str>,
    /// Version without build metadata, which is not compared.
    pub(crate) version: Option<Version>,
    /// APIs as [`Gvk::text`].
    pub(crate) apis: Vec<Rc<str>>,
    /// JSON of a [`Constraint`] each.
    pub(crate) requires: Vec<Rc<str>>,
}

/// Requirements of a composed catalog, and what fulfils them.
#[derive(Default)]
pub(crate) struct Dependencies {
    pub(crate) budget: Budget,
    /// Names of bundles, APIs and requirements, each once.
    texts: HashSet<Rc<str>>,
    /// Memory for what is known of all bundles.
    bytes: usize,
    apis: HashSet<Rc<str>>,
    packages: HashMap<Rc<str>, BTreeSet<Version>>,
    /// Names of the bundles with each requirement, in the order in which the requirements were
    /// added. Most bundles of a package require the same.
    pub(crate) required: IndexMap<RequiredBy, BTreeSet<Rc<str>>>,
}

/// Requirement of one package of the result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequiredBy {
    pub(crate) package: Rc<str>,
    /// JSON of a [`Constraint`].
    pub(crate) constraint: Rc<str>,
}

impl Dependencies {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self {
            budget: budget.clone(),
            ..Self::default()
        }
    }

    /// Adds one line of a package of the result.
    pub(crate) fn add_line(&mut self, package: &str, line: &[u8]) -> Result<(), ComposeError> {
        match self.read(package, line)? {
            Some(bundle) => self.add_bundle(package, &bundle),
            None => Ok(()),
        }
    }

    /// Adds one bundle of the result.
    pub(crate) fn add_bundle(
        &mut self,
        package: &str,
        bundle: &BundleDependencies,
    ) -> Result<(), ComposeError> {
        let package = self.keep(package, package)?;
        let versions = self.packages.entry(package.clone()).or_default();
        versions.extend(bundle.version.clone());
        self.apis.extend(bundle.apis.iter().cloned());
        for constraint in &bundle.requires {
            self.budget.charge(1)?;
            self.count(&package, REQUIRING_BYTES)?;
            let required = RequiredBy {
                package: package.clone(),
                constraint: constraint.clone(),
            };
            let bundles = self.required.entry(required).or_default();
            bundles.insert(bundle.name.clone());
        }
        Ok(())
    }

    /// Reads a line. One that is no bundle, or not a valid one, neither provides nor requires.
    pub(crate) fn read(
        &mut self,
        package: &str,
        line: &[u8],
    ) -> Result<Option<BundleDependencies>, ComposeError> {
        let Ok(bundle) = serde_json::from_slice::<BundleFields<'_>>(line) else {
            return Ok(None);
        };
        if bundle.schema != "olm.bundle" {
            return Ok(None);
        }
        let version = bundle.version().unwrap_or_default();
        self.count(package, version.len())?;
        let mut facts = BundleDependencies {
            name: self.keep(package, &bundle.name)?,
            version: parse_version(&version),
            apis: Vec::new(),
            requires: Vec::new(),
        };
        for property in bundle.properties.iter().flatten() {
            if let Some(api) = property.provided() {
                facts.apis.push(self.keep(package, &api)?);
            }
            let Some(constraint) = property.requirement() else {
                continue;
            };
            if constraint.len() > REQUIREMENT_BYTES_MAX {
                return Err(too_large(package, REQUIREMENT_BYTES_MAX));
            }
            facts.requires.push(self.keep(package, &constraint)?);
        }
        Ok(Some(facts))
    }

    /// Returns a text that is held once, and counts its memory.
    fn keep(&mut self, package: &str, text: &str) -> Result<Rc<str>, ComposeError> {
        self.budget.charge_bytes(text.len())?;
        self.count(package, size_of::<Rc<str>>())?;
        if let Some(known) = self.texts.get(text) {
            return Ok(known.clone());
        }
        self.count(package, FACT_BYTES + text.len())?;
        let text: Rc<str> = text.into();
        self.texts.insert(text.clone());
        Ok(text)
    }

    /// Counts memory that is held until the end.
    pub(crate) fn count(&mut self, package: &str, bytes: usize) -> Result<(), ComposeError> {
        self.bytes += bytes;
        if self.bytes > FACT_BYTES_MAX {
            return Err(too_large(package, FACT_BYTES_MAX));
        }
        Ok(())
    }

    /// Adds a notice for each requirement of a package that no package of the result fulfils.
    pub(crate) fn explain_missing(
        &self,
        explanation: &mut Explanation,
    ) -> Result<(), ComposeError> {
        for (required, bundles) in &self.required {
            let Some(constraint) = Constraint::parse(&required.constraint) else {
                continue;
            };
            let is_met = self.fulfils(&constraint);
            self.budget.charge(0)?;
            if is_met {
                continue;
            }
            let mut problem = ", which no package of the result provides".to_owned();
            if let Some(named) = &constraint.package
                && self.packages.contains_key(&*named.package_name)
            {
                let present = text::line(&named.package_name, TEXT_CHARS);
                problem =
                    format!("; the result has other versions of {present}: select one that fits");
            }
            explanation.notice(format!(
                "package {}: {} {}{problem}",
                text::line(&required.package, TEXT_CHARS),
                requiring(bundles),
                text::line(&constraint.to_string(), TEXT_CHARS),
            ));
        }
        Ok(())
    }

    /// Returns true if the result fulfils the constraint. Nothing is fulfilled once the budget is
    /// used up.
    pub(crate) fn fulfils(&self, constraint: &Constraint) -> bool {
        constraint.is_met(&|one| {
            self.budget.charge(1).is_ok()
                && one.gvk.as_ref().is_none_or(|api| self.has_api(api))
                && one.package.as_ref().is_none_or(|package| self.has(package))
        })
    }

    /// Returns true if a bundle of the result provides the API.
    pub(crate) fn has_api(&self, api: &Gvk) -> bool {
        self.apis.contains(&*api.text())
    }

    /// Returns true if the result has a bundle of the required package with a version that fits.
    pub(crate) fn has(&self, required: &RequiredPackage) -> bool {
        let versions = self.packages.get(&*required.package_name);
        versions.is_some_and(|versions| {
            let mut intervals = self.intervals(required).into_iter();
            intervals.any(|interval| versions.range(interval).next().is_some())
        })
    }

    /// Returns the versions that are required, as sorted intervals; none if the range is malformed,
    /// or once the budget is used up.
    pub(crate) fn intervals(&self, required: &RequiredPackage) -> Vec<VersionSpan> {
        let mut intervals = Vec::new();
        if let Some(range) = VersionRange::parse(&required.version_range) {
            intervals = range.intervals().to_vec();
        }
        // The range is read, and each interval is a search in a sorted set.
        let steps = 1 + required.version_range.len() / 64 + intervals.len();
        if self.budget.charge(steps as u64).is_err() {
            return Vec::new();
        }
        intervals
    }
}

fn requiring(bundles: &BTreeSet<Rc<str>>) -> String {
    let first = bundles.first().map(|first| text::line(first, TEXT_CHARS));
    let first = first.unwrap_or_default();
    match bundles.len() {
        1 => format!("{first} requires"),
        2 => format!("{first} and another bundle require"),
        count => format!("{first} and {} other bundles require", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_accept_exactly_their_memory() {
        let keep = |bytes| {
            let mut dependencies = Dependencies::new(&Budget::default());
            dependencies.bytes = bytes;
            dependencies
                .keep("p", "text")
                .map(|_| dependencies.keep("p", "text").is_ok())
        };
        let (first, again) = (
            size_of::<Rc<str>>() + FACT_BYTES + "text".len(),
            size_of::<Rc<str>>(),
        );
        assert!(keep(FACT_BYTES_MAX - first - again).unwrap());
        assert!(!keep(FACT_BYTES_MAX - first).unwrap());
        keep(FACT_BYTES_MAX - first + 1).unwrap_err();
    }
}
