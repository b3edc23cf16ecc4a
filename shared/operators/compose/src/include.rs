//! Packages that are taken along because bundles of the result require them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use indexmap::IndexMap;
use model::text;
use olm::Constraint;

use crate::candidate::{IncludeCandidate, IncludeReasons};
use crate::dependencies::{Dependencies, RequiredBy};
use crate::error::{TEXT_CHARS, listed};
use crate::lines::PackageReader;
use crate::{ComposeError, PackageSelection, PackageSource};

/// Maximum number of checks of the channels of one package. It is checked again only if another one
/// that is taken as a whole requires more of it, so packages of hostile catalogs alone come so far.
/// The whole package needs no check.
const CHECKS_MAX: usize = 20;

/// Finds packages of the inputs that provide what the result lacks. Nothing is read before
/// something is missing.
pub(crate) struct Includer<'a, C> {
    inputs: &'a mut [C],
    dependencies: &'a mut Dependencies,
    /// Names of the packages that are in the result, or that the user removed.
    excluded: &'a BTreeSet<String>,
    /// Packages that were read, each in the order of the inputs.
    candidates: BTreeMap<String, Vec<IncludeCandidate>>,
    /// Inputs and packages that provide an API; `None` until an API is missing.
    apis: Option<ApiProviders>,
    included: BTreeMap<String, Included>,
    /// Packages whose bundles have to be checked, because there are more of them.
    unchecked: BTreeSet<String>,
}

/// Inputs and packages that provide each API.
type ApiProviders = HashMap<Rc<str>, BTreeSet<(usize, String)>>;

/// Package that is taken along.
struct Included {
    candidate: usize,
    /// Reason for each bundle that is required.
    reasons: IncludeReasons,
    /// Number of checks so far.
    checks: usize,
    /// True if the bundles that are required make no valid channels.
    whole: bool,
}

/// Bundles of candidates that provide what is missing.
#[derive(Default)]
struct Providers {
    bundles: Vec<Provider>,
    /// Candidate of each package that is among them, in the order of their first bundles.
    chosen: IndexMap<String, usize>,
}

/// Bundle of a candidate.
struct Provider {
    package: String,
    candidate: usize,
    bundle: usize,
}

/// Package that is taken along, for the composition to write.
pub(crate) struct IncludedPackage {
    pub(crate) input: usize,
    /// Bundles to take; `None` for the whole package.
    pub(crate) selection: Option<PackageSelection>,
    pub(crate) reasons: IncludeReasons,
}

impl<'a, C: PackageSource> Includer<'a, C> {
    /// Creates an includer for a result that has the requirements `dependencies`. Packages that are
    /// `excluded` are in the result, or the user removed them.
    pub(crate) fn new(
        inputs: &'a mut [C],
        dependencies: &'a mut Dependencies,
        excluded: &'a BTreeSet<String>,
    ) -> Self {
        Self {
            inputs,
            dependencies,
            excluded,
            candidates: BTreeMap::new(),
            apis: None,
            included: BTreeMap::new(),
            unchecked: BTreeSet::new(),
        }
    }

    /// Takes along what is missing, and what that requires in turn. Returns the packages in byte
    /// order of their names.
    pub(crate) fn include_missing(
        mut self,
    ) -> Result<BTreeMap<String, IncludedPackage>, ComposeError> {
        // A requirement that no input meets stays so, because candidates are never added. Many
        // packages may have it.
        let mut unmet = HashSet::new();
        let mut next = 0;
        loop {
            // Requirements of bundles that are taken along come behind the others.
            while let Some((required, bundles)) = self.dependencies.required.get_index(next) {
                next += 1;
                let required = required.clone();
                let bundle = bundles.first().cloned().unwrap_or_default();
                if !unmet.contains(&required.constraint) && !self.meet(&required, &bundle)? {
                    unmet.insert(required.constraint);
                }
            }
            let Some(name) = self.unchecked.pop_first() else {
                break;
            };
            self.check(&name)?;
        }

        let mut packages = BTreeMap::new();
        for (name, included) in self.included {
            let candidate = &self.candidates[&name][included.candidate];
            let package = included.into_package(&name, candidate);
            packages.insert(name, package);
        }
        Ok(packages)
    }

    /// Takes along what a requirement of a bundle lacks. Returns false if no input has it.
    fn meet(&mut self, required: &RequiredBy, bundle: &str) -> Result<bool, ComposeError> {
        self.dependencies.budget.charge(1)?;
        let Some(constraint) = Constraint::parse(&required.constraint) else {
            return Ok(true);
        };
        let mut providers = Providers::default();
        if !self.find(&constraint, &mut providers)? {
            return Ok(false);
        }
        let reason: Rc<str> = format!(
            "included: {} of {} requires {}",
            text::line(bundle, TEXT_CHARS),
            text::line(&required.package, TEXT_CHARS),
            text::line(&constraint.to_string(), TEXT_CHARS),
        )
        .into();
        for provider in providers.bundles {
            self.take(&provider, &reason)?;
        }
        Ok(true)
    }

    /// Adds the bundles that meet a constraint to `providers`. Returns false if no input has them.
    fn find(
        &mut self,
        constraint: &Constraint,
        providers: &mut Providers,
    ) -> Result<bool, ComposeError> {
        if self.dependencies.fulfils(constraint) {
            return Ok(true);
        }
        if let Some(not) = &constraint.not {
            for part in &not.constraints {
                if self.dependencies.fulfils(part) {
                    return Ok(false);
                }
            }
        }
        if !self.find_api(constraint, providers)? || !self.find_package(constraint, providers)? {
            return Ok(false);
        }
        if let Some(all) = &constraint.all {
            for part in &all.constraints {
                if !self.find(part, providers)? {
                    return Ok(false);
                }
            }
        }
        let Some(any) = &constraint.any else {
            return Ok(true);
        };
        let bundles_before = providers.bundles.len();
        let chosen_before = providers.chosen.len();
        for part in &any.constraints {
            if self.find(part, providers)? {
                return Ok(true);
            }
            providers.bundles.truncate(bundles_before);
            providers.chosen.truncate(chosen_before);
        }
        Ok(false)
    }

    /// Adds a bundle of the package that the constraint names itself.
    fn find_package(
        &mut self,
        constraint: &Constraint,
        providers: &mut Providers,
    ) -> Result<bool, ComposeError> {
        let Some(required) = &constraint.package else {
            return Ok(true);
        };
        if self.dependencies.has(required) {
            return Ok(true);
        }
        let name = &required.package_name;
        self.read_candidates(name)?;
        let intervals = self.dependencies.intervals(required);
        let found = self.find_bundle(name, providers, |candidate| {
            for interval in intervals.iter().rev() {
                let mut fitting = candidate.by_version.range(interval.clone());
                if let Some((_, bundle)) = fitting.next_back() {
                    return Some(*bundle);
                }
            }
            None
        });
        Ok(found)
    }

    /// Adds a bundle with the API that the constraint names itself. Looks in the order of the
    /// inputs, and in an input in byte order of the packages.
    fn find_api(
        &mut self,
        constraint: &Constraint,
        providers: &mut Providers,
    ) -> Result<bool, ComposeError> {
        let Some(api) = &constraint.gvk else {
            return Ok(true);
        };
        if self.dependencies.has_api(api) {
            return Ok(true);
        }
        if self.apis.is_none() {
            self.apis = Some(self.read_apis()?);
        }
        let api = api.text();
        let packages = self.apis.as_ref().and_then(|apis| apis.get(&*api));
        for (_, package) in packages.into_iter().flatten() {
            self.dependencies.budget.charge(1)?;
            let found = self.find_bundle(package, providers, |candidate| {
                candidate.by_api.get(&*api).copied()
            });
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the bundle of a package that `highest` finds to `providers`. The first input that has
    /// one counts.
    fn find_bundle(
        &self,
        package: &str,
        providers: &mut Providers,
        highest: impl Fn(&IncludeCandidate) -> Option<usize>,
    ) -> bool {
        // The result has a package from one input only.
        let chosen = match self.included.get(package) {
            Some(included) => Some(included.candidate),
            None => providers.chosen.get(package).copied(),
        };
        let Some(candidates) = self.candidates.get(package) else {
            return false;
        };
        for (at, candidate) in candidates.iter().enumerate() {
            if chosen.is_some_and(|chosen| chosen != at) {
                continue;
            }
            if let Some(bundle) = highest(candidate) {
                providers.chosen.insert(package.to_owned(), at);
                providers.bundles.push(Provider {
                    package: package.to_owned(),
                    candidate: at,
                    bundle,
                });
                return true;
            }
        }
        false
    }

    fn take(&mut self, provider: &Provider, reason: &Rc<str>) -> Result<(), ComposeError> {
        let package = &provider.package;
        let included = self
            .included
            .entry(package.clone())
            .or_insert_with(|| Included {
                candidate: provider.candidate,
                reasons: IncludeReasons::new(),
                checks: 0,
                whole: false,
            });
        let bundle = &self.candidates[package][provider.candidate].bundles[provider.bundle];
        if included.whole || included.reasons.contains_key(&bundle.name) {
            return Ok(());
        }
        included.reasons.insert(bundle.name.clone(), reason.clone());
        self.unchecked.insert(package.clone());
        self.dependencies.add_bundle(package, bundle)
    }

    /// Takes the whole package if its bundles make no valid channels.
    fn check(&mut self, package: &str) -> Result<(), ComposeError> {
        let Some(included) = self.included.get_mut(package) else {
            return Ok(());
        };
        if included.whole {
            return Ok(());
        }
        let candidate = &self.candidates[package][included.candidate];
        included.checks += 1;
        if included.checks <= CHECKS_MAX && candidate.connects(&included.reasons) {
            return Ok(());
        }
        included.whole = true;
        for bundle in &candidate.bundles {
            if !included.reasons.contains_key(&bundle.name) {
                self.dependencies.add_bundle(package, bundle)?;
            }
        }
        Ok(())
    }

    /// Reads a package of each input that has it, unless that was done before.
    fn read_candidates(&mut self, package: &str) -> Result<(), ComposeError> {
        if package.is_empty()
            || self.excluded.contains(package)
            || self.candidates.contains_key(package)
        {
            return Ok(());
        }
        let mut candidates = Vec::new();
        for (at, input) in self.inputs.iter_mut().enumerate() {
            if !input.has(package) {
                continue;
            }
            let mut lines = PackageReader::open(input, package, &self.dependencies.budget)?;
            let candidate = IncludeCandidate::new(at, package, &mut lines, self.dependencies)?;
            candidates.extend(candidate);
        }
        if !candidates.is_empty() {
            self.candidates.insert(package.to_owned(), candidates);
        }
        Ok(())
    }

    /// Reads all packages, and returns the inputs and packages that provide each API.
    fn read_apis(&mut self) -> Result<ApiProviders, ComposeError> {
        let names = self.inputs.iter().flat_map(PackageSource::packages);
        let names: BTreeSet<String> = names.collect();
        for name in &names {
            self.read_candidates(name)?;
        }
        let mut apis = ApiProviders::new();
        for (name, candidates) in &self.candidates {
            for candidate in candidates {
                for api in candidate.by_api.keys() {
                    let packages = apis.entry(api.clone()).or_default();
                    packages.insert((candidate.input, name.clone()));
                }
            }
        }
        Ok(apis)
    }
}

impl Included {
    fn into_package(self, name: &str, candidate: &IncludeCandidate) -> IncludedPackage {
        let input = candidate.input;
        if !self.whole {
            return IncludedPackage {
                input,
                selection: Some(candidate.selection(name, &self.reasons)),
                reasons: self.reasons,
            };
        }
        let reasons: Vec<Rc<str>> = self.reasons.into_values().collect();
        let reason = format!(
            "{}; the whole package, because these bundles alone make no valid channel",
            listed(&reasons)
        );
        IncludedPackage {
            input,
            selection: None,
            reasons: IncludeReasons::from([("".into(), reason.into())]),
        }
    }
}
