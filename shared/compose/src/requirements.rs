//! Packages and APIs that a bundle provides and requires.

use std::{borrow::Cow, fmt, io};

use semver::Version;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::PackageLines;

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
