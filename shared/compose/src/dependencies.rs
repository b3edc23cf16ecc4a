//! Packages and APIs that bundles provide, and those that the bundles of a composed catalog require of each other.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt, io,
};

use olm::VersionRange;
use semver::Version;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Notice, PackageLines};

/// API that a bundle provides or requires.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub(crate) struct Gvk {
    group: String,
    version: String,
    kind: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RequiredPackage {
    pub(crate) package_name: String,
    pub(crate) version_range: String,
}

/// Value of an `olm.constraint`. Its depth is bounded by the JSON parser.
// A `cel` expression is not evaluated and counts as fulfilled.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Constraint {
    pub(crate) gvk: Option<Gvk>,
    pub(crate) package: Option<RequiredPackage>,
    pub(crate) all: Option<ConstraintList>,
    pub(crate) any: Option<ConstraintList>,
    pub(crate) not: Option<ConstraintList>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConstraintList {
    pub(crate) constraints: Vec<Constraint>,
}

/// Versions, APIs and requirements of one bundle.
#[derive(Debug, Default)]
pub(crate) struct BundleDependencies {
    pub(crate) name: String,
    /// Versions of its `olm.package` properties: one, unless the bundle is broken.
    pub(crate) versions: Vec<Version>,
    pub(crate) apis: Vec<Gvk>,
    pub(crate) requires: Vec<Constraint>,
}

#[derive(Deserialize)]
struct BundleFields<'a> {
    #[serde(borrow, default)]
    schema: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    properties: Option<Vec<PropertyFields<'a>>>,
}

#[derive(Deserialize)]
struct PropertyFields<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    value: &'a RawValue,
}

#[derive(Deserialize)]
struct PackageProperty {
    version: Version,
}

/// Passes each bundle of a package to `each`. A line that is no bundle, or not a valid one, neither provides nor requires.
pub(crate) fn for_each_bundle(
    lines: &mut PackageLines<'_>,
    mut each: impl FnMut(BundleDependencies),
) -> io::Result<()> {
    lines.for_each(|line| {
        let bundle = serde_json::from_slice::<BundleFields<'_>>(line);
        if let Some(bundle) = bundle.ok().filter(|bundle| bundle.schema == "olm.bundle") {
            each(facts(bundle));
        }
        Ok(())
    })
}

fn facts(bundle: BundleFields<'_>) -> BundleDependencies {
    let mut facts = BundleDependencies {
        name: bundle.name.into_owned(),
        ..BundleDependencies::default()
    };
    for property in bundle.properties.iter().flatten() {
        let constraint = match &*property.kind {
            "olm.package" => {
                facts
                    .versions
                    .extend(value(property).map(|package: PackageProperty| package.version));
                continue;
            }
            "olm.gvk" => {
                facts.apis.extend(value::<Gvk>(property));
                continue;
            }
            "olm.constraint" => value(property),
            "olm.gvk.required" => value(property).map(|gvk| Constraint {
                gvk: Some(gvk),
                ..Constraint::default()
            }),
            "olm.package.required" => value(property).map(|package| Constraint {
                package: Some(package),
                ..Constraint::default()
            }),
            _ => continue,
        };
        facts.requires.extend(constraint);
    }
    facts
}

fn value<'a, T: Deserialize<'a>>(property: &PropertyFields<'a>) -> Option<T> {
    serde_json::from_str(property.value.get()).ok()
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(gvk) = &self.gvk {
            parts.push(format!("API {}/{} {}", gvk.group, gvk.version, gvk.kind));
        }
        if let Some(package) = &self.package {
            parts.push(format!("package {} {}", package.package_name, package.version_range));
        }
        for (name, list) in [("all of", &self.all), ("any of", &self.any), ("none of", &self.not)] {
            if let Some(list) = list {
                let texts = list.constraints.iter().map(ToString::to_string);
                parts.push(format!("{name} ({})", texts.collect::<Vec<_>>().join(", ")));
            }
        }
        f.write_str(&parts.join(" and "))
    }
}

/// Requirements of a composed catalog, and what fulfils them.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    apis: HashSet<Gvk>,
    packages: HashMap<String, Vec<Version>>,
    required: Vec<RequiredBy>,
}

/// Requirement of one bundle of the result.
#[derive(Debug)]
pub(crate) struct RequiredBy {
    pub(crate) package: String,
    pub(crate) bundle: String,
    pub(crate) constraint: Constraint,
}

/// Bundles whose requirement is not met, and the package that the result has in other versions only.
#[derive(Default)]
struct Unmet<'a> {
    bundles: BTreeSet<&'a str>,
    present: Option<&'a str>,
}

impl Dependencies {
    /// Adds the bundles of one package of the result.
    pub(crate) fn add(&mut self, package: &str, lines: &mut PackageLines<'_>) -> io::Result<()> {
        self.packages.entry(package.to_owned()).or_default();
        for_each_bundle(lines, |bundle| self.add_bundle(package, &bundle))
    }

    /// Adds one bundle of the result.
    pub(crate) fn add_bundle(&mut self, package: &str, bundle: &BundleDependencies) {
        let versions = self.packages.entry(package.to_owned()).or_default();
        versions.extend(bundle.versions.iter().cloned());
        self.apis.extend(bundle.apis.iter().cloned());
        let required = bundle.requires.iter().map(|constraint| RequiredBy {
            package: package.to_owned(),
            bundle: bundle.name.clone(),
            constraint: constraint.clone(),
        });
        self.required.extend(required);
    }

    /// Returns the requirement with this number; `None` behind the last one.
    pub(crate) fn required(&self, at: usize) -> Option<&RequiredBy> {
        self.required.get(at)
    }

    /// Returns a notice for each requirement of a package that no package of the result fulfils. Most bundles of a package
    /// require the same.
    pub(crate) fn missing(&self) -> impl Iterator<Item = Notice> {
        let mut missing: BTreeMap<(&str, String), Unmet<'_>> = BTreeMap::new();
        for required in &self.required {
            if !self.fulfils(&required.constraint) {
                let key = (required.package.as_str(), required.constraint.to_string());
                let unmet = missing.entry(key).or_default();
                unmet.bundles.insert(&required.bundle);
                unmet.present = self.of_other_version(&required.constraint);
            }
        }
        missing.into_iter().map(|((package, required), unmet)| Notice::Missing {
            package: package.to_owned(),
            bundle: unmet.bundles.first().copied().unwrap_or_default().to_owned(),
            others: unmet.bundles.len().saturating_sub(1),
            required,
            present: unmet.present.map(str::to_owned),
        })
    }

    /// Returns the package of a plain requirement that the result has in other versions only.
    fn of_other_version<'c>(&self, constraint: &'c Constraint) -> Option<&'c str> {
        let name = &constraint.package.as_ref()?.package_name;
        self.packages.contains_key(name).then_some(name)
    }

    /// Returns true if the result fulfils the constraint.
    pub(crate) fn fulfils(&self, constraint: &Constraint) -> bool {
        let all = |list: &ConstraintList| list.constraints.iter().all(|part| self.fulfils(part));
        let any = |list: &ConstraintList| list.constraints.iter().any(|part| self.fulfils(part));
        constraint.gvk.as_ref().is_none_or(|gvk| self.has_api(gvk))
            && constraint.package.as_ref().is_none_or(|package| self.has(package))
            && constraint.all.as_ref().is_none_or(all)
            && constraint.any.as_ref().is_none_or(any)
            && constraint.not.as_ref().is_none_or(|list| !any(list))
    }

    /// Returns true if a bundle of the result provides the API.
    pub(crate) fn has_api(&self, api: &Gvk) -> bool {
        self.apis.contains(api)
    }

    /// Returns true if the result has a bundle of the required package with a version that fits.
    pub(crate) fn has(&self, required: &RequiredPackage) -> bool {
        let versions = self.packages.get(&required.package_name).map_or(&[][..], Vec::as_slice);
        let range = required.version_range.parse::<VersionRange>();
        range.is_ok_and(|range| versions.iter().any(|version| range.contains(version)))
    }
}
