//! Packages and APIs that bundles require of other packages.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt,
};

use semver::Version;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Notice, VersionRange, rewrite::lines};

/// API that a bundle provides or requires.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
struct Gvk {
    group: String,
    version: String,
    kind: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequiredPackage {
    package_name: String,
    version_range: String,
}

/// Value of an `olm.constraint`. Its depth is bounded by the JSON parser.
// A `cel` expression is not evaluated and counts as fulfilled.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Constraint {
    gvk: Option<Gvk>,
    package: Option<RequiredPackage>,
    all: Option<ConstraintList>,
    any: Option<ConstraintList>,
    not: Option<ConstraintList>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ConstraintList {
    constraints: Vec<Constraint>,
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

/// Requirements of a composed catalog, and what fulfils them.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    apis: HashSet<Gvk>,
    packages: HashMap<String, Vec<Version>>,
    required: Vec<RequiredBy>,
}

#[derive(Debug)]
struct RequiredBy {
    package: String,
    bundle: String,
    constraint: Constraint,
}

impl Dependencies {
    /// Adds the bundles of one package of the result.
    pub(crate) fn add(&mut self, package: &str, shard: &[u8]) {
        let versions = self.packages.entry(package.to_owned()).or_default();
        for line in lines(shard) {
            // A line that is no bundle, or not a valid one, neither provides nor requires.
            let Ok(bundle) = serde_json::from_slice::<BundleFields<'_>>(line) else {
                continue;
            };
            if bundle.schema != "olm.bundle" {
                continue;
            }
            for property in bundle.properties.iter().flatten() {
                let constraint = match &*property.kind {
                    "olm.package" => {
                        versions.extend(value(property).map(|package: PackageProperty| package.version));
                        continue;
                    }
                    "olm.gvk" => {
                        self.apis.extend(value::<Gvk>(property));
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
                self.required.extend(constraint.map(|constraint| RequiredBy {
                    package: package.to_owned(),
                    bundle: bundle.name.to_string(),
                    constraint,
                }));
            }
        }
    }

    /// Returns a notice for each requirement of a package that no package of the result fulfils. Most bundles of a package
    /// require the same.
    pub(crate) fn missing(&self) -> impl Iterator<Item = Notice> {
        let mut missing: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
        for required in &self.required {
            if !self.fulfils(&required.constraint) {
                let key = (required.package.as_str(), required.constraint.to_string());
                missing.entry(key).or_default().insert(&required.bundle);
            }
        }
        missing
            .into_iter()
            .map(|((package, required), bundles)| Notice::Missing {
                package: package.to_owned(),
                bundle: bundles.first().copied().unwrap_or_default().to_owned(),
                others: bundles.len().saturating_sub(1),
                required,
            })
    }

    fn fulfils(&self, constraint: &Constraint) -> bool {
        let holds = |list: &ConstraintList, all: bool| match all {
            true => list.constraints.iter().all(|part| self.fulfils(part)),
            false => list.constraints.iter().any(|part| self.fulfils(part)),
        };
        constraint.gvk.as_ref().is_none_or(|gvk| self.apis.contains(gvk))
            && constraint.package.as_ref().is_none_or(|package| self.has(package))
            && constraint.all.as_ref().is_none_or(|list| holds(list, true))
            && constraint.any.as_ref().is_none_or(|list| holds(list, false))
            && constraint.not.as_ref().is_none_or(|list| !holds(list, false))
    }

    fn has(&self, required: &RequiredPackage) -> bool {
        let versions = self.packages.get(&required.package_name).map_or(&[][..], Vec::as_slice);
        let range = required.version_range.parse::<VersionRange>();
        range.is_ok_and(|range| versions.iter().any(|version| range.contains(version)))
    }
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
