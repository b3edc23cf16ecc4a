//! Requirements of bundles, and APIs that bundles provide.

use std::fmt;

use serde::Deserialize;

/// API that a bundle provides or requires.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Gvk {
    /// Group of the API; empty for the core of Kubernetes.
    pub group: String,
    /// Version of the API.
    pub version: String,
    /// Kind of its objects.
    pub kind: String,
}

/// Package that a bundle requires.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequiredPackage {
    /// Name of the package.
    pub package_name: String,
    /// Range of versions that will do.
    pub version_range: String,
}

/// Value of an `olm.constraint`. Its depth is bounded by the JSON parser.
// A `cel` expression is not evaluated and counts as fulfilled. Boxed, because `{}` is a constraint too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Constraint {
    /// API that is required.
    pub gvk: Option<Box<Gvk>>,
    /// Package that is required.
    pub package: Option<Box<RequiredPackage>>,
    /// Constraints that must all hold.
    pub all: Option<Box<ConstraintList>>,
    /// Constraints of which one must hold.
    pub any: Option<Box<ConstraintList>>,
    /// Constraints of which none may hold.
    pub not: Option<Box<ConstraintList>>,
}

/// Several constraints.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConstraintList {
    /// The constraints.
    pub constraints: Vec<Constraint>,
}

impl Gvk {
    /// Returns a text that no other API has.
    pub fn text(&self) -> String {
        format!("{:?}", (&self.group, &self.version, &self.kind))
    }
}

impl Constraint {
    /// Reads what a bundle requires; `None` if it is malformed.
    pub fn parse(json: &str) -> Option<Self> {
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
