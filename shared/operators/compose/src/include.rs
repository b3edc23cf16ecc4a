//! Packages that are taken along because bundles of the result require them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use indexmap::IndexMap;
use olm::Constraint;

use crate::candidate::{IncludeCandidate, IncludeReasons};
use crate::dependencies::{Dependencies, RequiredBy};
use crate::error::{listed, shown};
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
        let (mut unmet, mut at) = (HashSet::new(), 0);
        loop {
            // Requirements of bundles that are taken along come behind the others.
            while let Some((required, bundles)) = self.dependencies.required.get_index(at) {
                at += 1;
                let (required, bundle) = (
                    required.clone(),
                    bundles.first().cloned().unwrap_or_default(),
                );
                if !unmet.contains(&required.constraint) && !self.meet(&required, &bundle)? {
                    unmet.insert(required.constraint);
                }
            }
            let Some(name) = self.unchecked.pop_first() else {
                break;
            };
            self.check(&name)?;
        }
        let candidates = &self.candidates;
        let packages = self.included.into_iter().map(|(name, included)| {
            let candidate = &candidates[&name][included.candidate];
            let package = included.into_package(&name, candidate);
            (name, package)
        });
        Ok(packages.collect())
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
        let (bundle, package) = (shown(bundle), shown(&required.package));
        let text = shown(&constraint.to_string());
        let reason: Rc<str> = format!("included: {bundle} of {package} requires {text}").into();
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
        let mut unwanted = constraint.not.iter().flat_map(|list| &list.constraints);
        if unwanted.any(|part| self.dependencies.fulfils(part))
            || !self.find_api(constraint, providers)?
            || !self.find_package(constraint, providers)?
        {
            return Ok(false);
        }
        for part in constraint.all.iter().flat_map(|list| &list.constraints) {
            if !self.find(part, providers)? {
                return Ok(false);
            }
        }
        let Some(any) = &constraint.any else {
            return Ok(true);
        };
        let (bundles, chosen) = (providers.bundles.len(), providers.chosen.len());
        for part in &any.constraints {
            if self.find(part, providers)? {
                return Ok(true);
            }
            providers.bundles.truncate(bundles);
            providers.chosen.truncate(chosen);
        }
        Ok(false)
    }

    /// Adds a bundle of the package that the constraint names itself.
    fn find_package(
        &mut self,
        constraint: &Constraint,
        providers: &mut Providers,
    ) -> Result<bool, ComposeError> {
        let required = constraint.package.as_deref();
        let Some(required) = required.filter(|required| !self.dependencies.has(required)) else {
            return Ok(true);
        };
        self.read_candidates(&required.package_name)?;
        let intervals = self.dependencies.intervals(required);
        Ok(
            self.find_bundle(&required.package_name, providers, |candidate| {
                let mut intervals = intervals.iter().rev();
                let highest = intervals
                    .find_map(|interval| candidate.by_version.range(interval.clone()).next_back());
                highest.map(|(_, bundle)| *bundle)
            }),
        )
    }

    /// Adds a bundle with the API that the constraint names itself. Looks in the order of the
    /// inputs, and in an input in byte order of the packages.
    fn find_api(
        &mut self,
        constraint: &Constraint,
        providers: &mut Providers,
    ) -> Result<bool, ComposeError> {
        let api = constraint.gvk.as_deref();
        let Some(api) = api.filter(|api| !self.dependencies.has_api(api)) else {
            return Ok(true);
        };
        if self.apis.is_none() {
            self.apis = Some(self.read_apis()?);
        }
        let api = api.text();
        let packages = self.apis.iter().find_map(|apis| apis.get(&*api));
        for (_, package) in packages.into_iter().flatten() {
            self.dependencies.budget.charge(1)?;
            if self.find_bundle(package, providers, |candidate| {
                candidate.by_api.get(&*api).copied()
            }) {
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
        let included = self
            .included
            .get(package)
            .map(|included| included.candidate);
        let taken = included.or_else(|| providers.chosen.get(package).copied());
        let candidates = self
            .candidates
            .get(package)
            .into_iter()
            .flatten()
            .enumerate();
        let mut candidates = candidates.filter(|(at, _)| taken.is_none_or(|taken| taken == *at));
        let found = candidates.find_map(|(at, candidate)| Some((at, highest(candidate)?)));
        if let Some((candidate, bundle)) = found {
            let package = package.to_owned();
            providers.chosen.insert(package.clone(), candidate);
            providers.bundles.push(Provider {
                package,
                candidate,
                bundle,
            });
        }
        found.is_some()
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
        let Some(included) = self
            .included
            .get_mut(package)
            .filter(|included| !included.whole)
        else {
            return Ok(());
        };
        let candidate = &self.candidates[package][included.candidate];
        included.checks += 1;
        if included.checks <= CHECKS_MAX && candidate.connects(&included.reasons) {
            return Ok(());
        }
        included.whole = true;
        let bundles = candidate.bundles.iter();
        for bundle in bundles.filter(|bundle| !included.reasons.contains_key(&bundle.name)) {
            self.dependencies.add_bundle(package, bundle)?;
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
            if input.has(package) {
                let mut lines = PackageReader::open(input, package, &self.dependencies.budget)?;
                candidates.extend(IncludeCandidate::new(
                    at,
                    package,
                    &mut lines,
                    self.dependencies,
                )?);
            }
        }
        if !candidates.is_empty() {
            self.candidates.insert(package.to_owned(), candidates);
        }
        Ok(())
    }

    /// Reads all packages, and returns the inputs and packages that provide each API.
    fn read_apis(&mut self) -> Result<ApiProviders, ComposeError> {
        let names: BTreeSet<String> = self
            .inputs
            .iter()
            .flat_map(PackageSource::packages)
            .collect();
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
        let (mut selection, mut reasons) = (None, self.reasons);
        if self.whole {
            let listed = listed(&reasons.into_values().collect::<Vec<_>>());
            let reason = format!(
                "{listed}; the whole package, because these bundles alone make no valid channel"
            );
            reasons = IncludeReasons::from([("".into(), reason.into())]);
        } else {
            selection = Some(candidate.selection(name, &reasons));
        }
        IncludedPackage {
            input: candidate.input,
            selection,
            reasons,
        }
    }
}
