//! Packages that are taken along because bundles of the result require them.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    io,
};

use olm::{Channel, VersionRange};

use crate::{
    ComposeError, Decision, Kept, PackageLines, PackageSelection, PackageSource, SelectedBundle, SelectedPackage,
    Selection,
    dependencies::{BundleDependencies, Constraint, Dependencies, Gvk, RequiredPackage, for_each_bundle},
    input::NamedCatalog,
    kept_channel::{self, KeptEntries},
};

/// Finds packages of the inputs that provide what the result lacks. Nothing is read before something is missing.
pub(crate) struct Includer<'a, 'i, C> {
    inputs: &'a mut [NamedCatalog<'i, C>],
    dependencies: &'a mut Dependencies,
    /// Names of the packages that are in the result, or that the user removed.
    excluded: &'a BTreeSet<String>,
    /// Packages that were read, each in the order of the inputs.
    candidates: BTreeMap<String, Vec<IncludeCandidate>>,
    /// Inputs and packages that provide an API; `None` until an API is missing.
    apis: Option<HashMap<Gvk, BTreeSet<(usize, String)>>>,
    included: BTreeMap<String, Included>,
}

/// Package of an input that the result does not have.
struct IncludeCandidate {
    input: usize,
    default_channel: String,
    channels: BTreeMap<String, Channel>,
    bundles: Vec<BundleDependencies>,
}

/// Package that is taken along.
struct Included {
    candidate: usize,
    /// Reason for each bundle that is required.
    reasons: BTreeMap<usize, String>,
    /// True if the bundles that are required make no valid channels.
    whole: bool,
}

/// Bundle of a candidate that provides what is missing.
struct Provider {
    package: String,
    candidate: usize,
    bundle: usize,
}

impl<'a, 'i, C: PackageSource> Includer<'a, 'i, C> {
    /// Creates an includer for a result that has the requirements `dependencies`. Packages that are `excluded` are in the
    /// result, or the user removed them.
    pub(crate) fn new(
        inputs: &'a mut [NamedCatalog<'i, C>],
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
        }
    }

    /// Takes along what is missing, and what that requires in turn. Returns the names of the packages in byte order.
    pub(crate) fn include_missing(&mut self) -> Result<Vec<String>, ComposeError> {
        // A requirement that no input meets stays so, because candidates are never added. Thousands of bundles may have it.
        let mut unmet = HashSet::new();
        let mut at = 0;
        // Requirements of bundles that are taken along come behind the others.
        while let Some(required) = self.dependencies.required(at) {
            at += 1;
            if self.dependencies.fulfils(&required.constraint) {
                continue;
            }
            let (constraint, text) = (required.constraint.clone(), required.constraint.to_string());
            let reason = format!("included: {} of {} requires {text}", required.bundle, required.package);
            let mut providers = Vec::new();
            if unmet.contains(&text) || !self.find(&constraint, &mut providers)? {
                unmet.insert(text);
                continue;
            }
            for provider in providers {
                self.take(&provider, &reason);
            }
        }
        Ok(self.included.keys().cloned().collect())
    }

    /// Adds the bundles that meet a constraint to `providers`. Returns false if no input has them.
    fn find(&mut self, constraint: &Constraint, providers: &mut Vec<Provider>) -> Result<bool, ComposeError> {
        if self.dependencies.fulfils(constraint) {
            return Ok(true);
        }
        let mut excluded = constraint.not.iter().flat_map(|list| &list.constraints);
        if excluded.any(|part| self.dependencies.fulfils(part)) {
            return Ok(false);
        }
        if let Some(api) = &constraint.gvk
            && !self.find_api(api, providers)?
        {
            return Ok(false);
        }
        if let Some(package) = &constraint.package
            && !self.find_package(package, providers)?
        {
            return Ok(false);
        }
        for part in constraint.all.iter().flat_map(|list| &list.constraints) {
            if !self.find(part, providers)? {
                return Ok(false);
            }
        }
        let Some(any) = &constraint.any else { return Ok(true) };
        let before = providers.len();
        for part in &any.constraints {
            if self.find(part, providers)? {
                return Ok(true);
            }
            providers.truncate(before);
        }
        Ok(false)
    }

    fn find_package(
        &mut self,
        required: &RequiredPackage,
        providers: &mut Vec<Provider>,
    ) -> Result<bool, ComposeError> {
        let Ok(range) = required.version_range.parse::<VersionRange>() else {
            return Ok(false);
        };
        if self.dependencies.has(required) {
            return Ok(true);
        }
        self.read_candidates(&required.package_name)?;
        let fits = |bundle: &BundleDependencies| bundle.versions.iter().any(|version| range.contains(version));
        Ok(self.find_bundle(&required.package_name, providers, fits))
    }

    /// Looks in the order of the inputs, and in an input in byte order of the packages.
    fn find_api(&mut self, api: &Gvk, providers: &mut Vec<Provider>) -> Result<bool, ComposeError> {
        if self.dependencies.has_api(api) {
            return Ok(true);
        }
        if self.apis.is_none() {
            self.apis = Some(self.read_apis()?);
        }
        let packages = self.apis.iter().find_map(|apis| apis.get(api));
        let packages = packages.cloned().unwrap_or_default();
        let fits = |bundle: &BundleDependencies| bundle.apis.contains(api);
        let mut packages = packages.iter();
        Ok(packages.any(|(_, package)| self.find_bundle(package, providers, fits)))
    }

    /// Adds the bundle of a package with the highest version that fits to `providers`. The first input that has one counts.
    fn find_bundle(
        &self,
        package: &str,
        providers: &mut Vec<Provider>,
        fits: impl Fn(&BundleDependencies) -> bool,
    ) -> bool {
        let chosen = providers.iter().find(|provider| provider.package == package);
        let chosen = chosen.map(|provider| provider.candidate);
        // The result has a package from one input only.
        let taken = self.included.get(package).map(|included| included.candidate).or(chosen);
        let candidates = self.candidates.get(package).into_iter().flatten().enumerate();
        let candidates = candidates.filter(|(at, _)| taken.is_none_or(|taken| taken == *at));
        for (candidate, found) in candidates {
            let fitting = found.bundles.iter().enumerate();
            let fitting = fitting.filter(|(_, bundle)| fits(bundle) && found.offers(&bundle.name));
            if let Some((bundle, _)) = fitting.max_by(|(_, one), (_, other)| by_version(one, other)) {
                providers.push(Provider {
                    package: package.to_owned(),
                    candidate,
                    bundle,
                });
                return true;
            }
        }
        false
    }

    fn take(&mut self, provider: &Provider, reason: &str) {
        let candidate = &self.candidates[&provider.package][provider.candidate];
        let included = self
            .included
            .entry(provider.package.clone())
            .or_insert_with(|| Included {
                candidate: provider.candidate,
                reasons: BTreeMap::new(),
                whole: false,
            });
        if included.whole || included.reasons.contains_key(&provider.bundle) {
            return;
        }
        included.reasons.insert(provider.bundle, reason.to_owned());
        let bundle = &candidate.bundles[provider.bundle];
        self.dependencies.add_bundle(&provider.package, bundle);
        if !candidate.connects(&included.names(candidate)) {
            included.whole = true;
            let others = candidate.bundles.iter().enumerate();
            for (_, bundle) in others.filter(|(at, _)| !included.reasons.contains_key(at)) {
                self.dependencies.add_bundle(&provider.package, bundle);
            }
        }
    }

    /// Reads a package of each input that has it, unless that was done before.
    fn read_candidates(&mut self, package: &str) -> Result<(), ComposeError> {
        if self.candidates.contains_key(package) {
            return Ok(());
        }
        let mut candidates = Vec::new();
        if !package.is_empty() && !self.excluded.contains(package) {
            for (at, input) in self.inputs.iter_mut().enumerate() {
                if input.packages.contains(package) {
                    let candidate = IncludeCandidate::new(at, &mut input.read(package)?);
                    candidates.extend(candidate.map_err(|source| input.unreadable(package, source))?);
                }
            }
        }
        self.candidates.insert(package.to_owned(), candidates);
        Ok(())
    }

    /// Reads all packages, and returns the inputs and packages that provide each API.
    fn read_apis(&mut self) -> Result<HashMap<Gvk, BTreeSet<(usize, String)>>, ComposeError> {
        let names: BTreeSet<String> = self.inputs.iter().flat_map(|input| &input.packages).cloned().collect();
        for name in &names {
            self.read_candidates(name)?;
        }
        let mut apis: HashMap<Gvk, BTreeSet<(usize, String)>> = HashMap::new();
        for (name, candidates) in &self.candidates {
            for candidate in candidates {
                for api in candidate.bundles.iter().flat_map(|bundle| &bundle.apis) {
                    let packages = apis.entry(api.clone()).or_default();
                    packages.insert((candidate.input, name.clone()));
                }
            }
        }
        Ok(apis)
    }

    /// Returns the input of a package that is taken along, and what the result gets of it.
    pub(crate) fn package(&mut self, name: &str) -> Result<(usize, SelectedPackage), ComposeError> {
        let included = &self.included[name];
        let candidate = &self.candidates[name][included.candidate];
        if included.whole {
            let reasons: Vec<&str> = included.reasons.values().map(String::as_str).collect();
            let reason = format!(
                "{}; the whole package, because these bundles alone make no valid channel",
                reasons.join(", ")
            );
            let package = SelectedPackage {
                kept: Kept::Whole,
                decisions: vec![Decision::of_package(name, true, reason)],
                notices: Vec::new(),
            };
            return Ok((candidate.input, package));
        }
        let input = &mut self.inputs[candidate.input];
        let selection = candidate.selection(name, &included.names(candidate));
        let selected = selection.apply_to(name, &mut input.read(name)?);
        let selected = selected.map_err(|source| ComposeError::Select(input.name.to_owned(), Box::new(source)))?;
        let mut selected = selected.expect("the selection names the package");
        let reasons = included.reasons.iter();
        let reasons: HashMap<&str, &String> = reasons
            .map(|(at, reason)| (candidate.bundles[*at].name.as_str(), reason))
            .collect();
        for decision in &mut selected.decisions {
            let reason = reasons.get(decision.bundle.as_str()).map(|reason| (*reason).clone());
            decision.reason = reason.unwrap_or_else(|| "not required".to_owned());
        }
        Ok((candidate.input, selected))
    }
}

impl IncludeCandidate {
    /// Returns the package, unless it has no valid default channel or cannot be read, so that OLM would refuse it.
    fn new(input: usize, lines: &mut PackageLines<'_>) -> io::Result<Option<Self>> {
        let package = lines.parse()?;
        let default = package
            .default_channel
            .filter(|name| package.channels.contains_key(name));
        let Some(default_channel) = default.filter(|_| package.unreadable.is_empty()) else {
            return Ok(None);
        };
        let mut bundles = Vec::new();
        for_each_bundle(lines, |bundle| bundles.push(bundle))?;
        Ok(Some(Self {
            input,
            default_channel,
            channels: package.channels,
            bundles,
        }))
    }

    /// Returns true if the bundle is in a channel.
    fn offers(&self, bundle: &str) -> bool {
        self.channels
            .values()
            .any(|channel| channel.entries.contains_key(bundle))
    }

    /// Returns true if each channel is valid with these entries alone.
    fn connects(&self, names: &KeptEntries<'_>) -> bool {
        self.channels.values().all(|channel| {
            let kept = channel.entries.keys().map(String::as_str);
            let kept: KeptEntries<'_> = kept.filter(|entry| names.contains(entry)).collect();
            kept.is_empty() || kept.len() == channel.entries.len() || kept_channel::check(channel, &kept).is_ok()
        })
    }

    /// Returns the selection of these bundles. If none of them is in the default channel, the first channel that has one
    /// takes its place.
    fn selection(&self, name: &str, names: &KeptEntries<'_>) -> Selection {
        let has = |channel: &Channel| names.iter().any(|name| channel.entries.contains_key(*name));
        let other = if self.channels.get(&self.default_channel).is_some_and(has) {
            None
        } else {
            self.channels.iter().find(|(_, channel)| has(channel))
        };
        let bundles = names.iter().map(|name| SelectedBundle {
            name: (*name).to_owned(),
        });
        Selection {
            full: false,
            packages: vec![PackageSelection {
                name: name.to_owned(),
                default_channel: other.map(|(channel, _)| channel.clone()),
                selected_bundles: bundles.collect(),
                ..PackageSelection::default()
            }],
        }
    }
}

impl Included {
    fn names<'c>(&self, candidate: &'c IncludeCandidate) -> KeptEntries<'c> {
        let names = self.reasons.keys().map(|at| candidate.bundles[*at].name.as_str());
        names.collect()
    }
}

/// Compares two bundles of a package by their versions, then by their names.
fn by_version(one: &BundleDependencies, other: &BundleDependencies) -> Ordering {
    let versions = match (one.versions.first(), other.versions.first()) {
        (Some(one), Some(other)) => one.cmp_precedence(other),
        (one, other) => one.is_some().cmp(&other.is_some()),
    };
    versions.then_with(|| one.name.cmp(&other.name))
}
