//! Requirements of bundles, and APIs that bundles provide.

use std::fmt;

use serde::Deserialize;

/// API that a bundle provides or requires.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Gvk {
    group: String,
    version: String,
    kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RequiredPackage {
    pub(crate) package_name: String,
    pub(crate) version_range: String,
}

/// Value of an `olm.constraint`. Its depth is bounded by the JSON parser.
// A `cel` expression is not evaluated and counts as fulfilled. Boxed, because `{}` is a constraint too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Constraint {
    pub(crate) gvk: Option<Box<Gvk>>,
    pub(crate) package: Option<Box<RequiredPackage>>,
    pub(crate) all: Option<Box<ConstraintList>>,
    pub(crate) any: Option<Box<ConstraintList>>,
    pub(crate) not: Option<Box<ConstraintList>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConstraintList {
    pub(crate) constraints: Vec<Constraint>,
}

impl Gvk {
    /// Returns a text that no other API has.
    pub(crate) fn text(&self) -> String {
        format!("{:?}", (&self.group, &self.version, &self.kind))
    }
}

impl Constraint {
    /// Reads what a bundle requires; `None` if it is malformed.
    pub(crate) fn parse(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }
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
