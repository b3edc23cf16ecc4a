//! Bundles with their versions and requirements, and APIs that they provide.

use std::{borrow::Cow, fmt};

use serde::Deserialize;
use serde_json::value::RawValue;

/// Fields of the line of a bundle. A bundle whose content lies in the catalog (`olm.bundle.object`)
/// has no image.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BundleFields<'a> {
    /// Schema; `olm.bundle` for a bundle.
    #[serde(borrow)]
    pub schema: Cow<'a, str>,
    /// Name of the bundle.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    pub(crate) image: Option<String>,
    pub(crate) related_images: Option<Vec<OlmImage>>,
    /// Properties in the order of the line, those of unknown types too.
    #[serde(borrow)]
    pub properties: Option<Vec<PropertyFields<'a>>>,
}

/// Element of `relatedImages` of an `olm.bundle`.
#[derive(Debug, Deserialize)]
pub(crate) struct OlmImage {
    pub(crate) name: Option<String>,
    pub(crate) image: Option<String>,
}

/// Property of a bundle. Most values are large and not needed, so they stay JSON.
#[derive(Debug, Deserialize)]
pub struct PropertyFields<'a> {
    /// Type, such as `olm.gvk`.
    #[serde(borrow, default, rename = "type")]
    pub kind: Cow<'a, str>,
    /// Value as JSON.
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

/// Fields of the value of a property `olm.package`.
#[derive(Deserialize)]
struct PackageProperty {
    version: String,
}

/// Property with the newest version of OpenShift for which a bundle is.
const MAX_OPENSHIFT: &str = "olm.maxOpenShiftVersion";

/// API that a bundle provides or requires.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Gvk {
    /// Group of the API; empty for the core of Kubernetes.
    pub group: String,
    /// Version of the API, such as `v1beta1`.
    pub version: String,
    /// Kind of the objects of the API, such as `EtcdCluster`.
    pub kind: String,
}

/// Package that a bundle requires, with the versions that will do.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequiredPackage {
    /// Name of the package.
    pub package_name: String,
    /// Range of versions that will do, as blang writes ranges: `>=1.2.0 <2.0.0`.
    pub version_range: String,
}

/// Value of an `olm.constraint`. Its depth is bounded by the JSON parser.
// A `cel` expression is not evaluated and counts as fulfilled. Boxed, because `{}` is a constraint
// too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Constraint {
    /// API of which one provider must be there.
    pub gvk: Option<Box<Gvk>>,
    /// Package of which a version in the range must be there.
    pub package: Option<Box<RequiredPackage>>,
    /// Constraints that must all hold.
    pub all: Option<Box<ConstraintList>>,
    /// Constraints of which one must hold.
    pub any: Option<Box<ConstraintList>>,
    /// Constraints of which none may hold.
    pub not: Option<Box<ConstraintList>>,
}

/// Constraints of `all`, `any` or `not`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConstraintList {
    /// Constraints in the order of the bundle. They may hold lists again.
    pub constraints: Vec<Constraint>,
}

impl Gvk {
    /// Returns a text that no other API has.
    pub fn text(&self) -> String {
        format!("{:?}", (&self.group, &self.version, &self.kind))
    }
}

impl BundleFields<'_> {
    /// Returns the version in the property `olm.package`.
    pub fn version(&self) -> Option<String> {
        let mut properties = self.properties.iter().flatten();
        let package = properties.find(|property| property.kind == "olm.package")?;
        package
            .value()
            .map(|package: PackageProperty| package.version)
    }
}

impl<'a> PropertyFields<'a> {
    /// Returns the value as JSON; `null` if there is none.
    pub fn json(&self) -> &'a str {
        self.value.map_or("null", RawValue::get)
    }

    /// Reads the value; `None` if it has another type.
    pub fn value<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.json()).ok()
    }

    /// Returns the newest version of OpenShift for which the bundle is, as OLM v0 reads it; `None`
    /// for another property.
    pub fn max_openshift(&self) -> Option<String> {
        (self.kind == MAX_OPENSHIFT).then(|| self.json().trim_matches('"').to_owned())
    }

    /// Returns the API that the bundle provides, as [`Gvk::text`]; `None` for another property.
    pub fn provided(&self) -> Option<String> {
        let api = (self.kind == "olm.gvk").then(|| self.value::<Gvk>());
        api.flatten().map(|api| api.text())
    }

    /// Returns what the bundle requires as the JSON of a [`Constraint`]; `None` for a property that
    /// is no requirement.
    pub fn requirement(&self) -> Option<Cow<'a, str>> {
        let json = self.json();
        match &*self.kind {
            "olm.constraint" => Some(Cow::Borrowed(json)),
            "olm.gvk.required" => Some(Cow::Owned(format!(r#"{{"gvk":{json}}}"#))),
            "olm.package.required" => Some(Cow::Owned(format!(r#"{{"package":{json}}}"#))),
            _ => None,
        }
    }
}

impl Constraint {
    /// Reads what a bundle requires; `None` if it is malformed.
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Returns true if the constraint is met. `has` answers for the API and the package of one
    /// constraint, without its parts.
    pub fn is_met(&self, has: &dyn Fn(&Self) -> bool) -> bool {
        let is_met = |part: &Self| part.is_met(has);
        let all = self.all.as_ref();
        let any = self.any.as_ref();
        let not = self.not.as_ref();
        has(self)
            && all.is_none_or(|list| list.constraints.iter().all(is_met))
            && any.is_none_or(|list| list.constraints.iter().any(is_met))
            && not.is_none_or(|list| !list.constraints.iter().any(is_met))
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(gvk) = &self.gvk {
            parts.push(format!("API {}/{} {}", gvk.group, gvk.version, gvk.kind));
        }
        if let Some(package) = &self.package {
            parts.push(format!(
                "package {} {}",
                package.package_name, package.version_range
            ));
        }
        for (name, list) in [
            ("all of", &self.all),
            ("any of", &self.any),
            ("none of", &self.not),
        ] {
            if let Some(list) = list {
                let texts = list.constraints.iter().map(ToString::to_string);
                parts.push(format!("{name} ({})", texts.collect::<Vec<_>>().join(", ")));
            }
        }
        f.write_str(&parts.join(" and "))
    }
}
