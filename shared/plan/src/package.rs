//! Packages with what matters before an upgrade.

use std::collections::{BTreeMap, BTreeSet};

use crate::installed::MAX_OPENSHIFT;
use olm::{BundleFields, Constraint, Gvk, LIFECYCLES, Lifecycle, Package, PackageParser, PropertyFields};

/// Package with properties of its bundles and its phases of support.
#[derive(Debug, Default)]
pub struct PlannedPackage {
    pub(crate) package: Package,
    pub(crate) bundles: BTreeMap<String, BundleProperties>,
    pub(crate) lifecycles: Vec<Lifecycle>,
}

/// Properties of a bundle that matter before an upgrade.
#[derive(Debug, Default)]
pub(crate) struct BundleProperties {
    /// Values of `olm.maxOpenShiftVersion`, as JSON.
    pub(crate) max_openshift: Vec<String>,
    /// APIs as [`Gvk::text`].
    pub(crate) provides: BTreeSet<String>,
    pub(crate) requires: Vec<Constraint>,
}

impl PlannedPackage {
    /// Reads the lines of a package. What does not fit its schema is left out, as OLM leaves out such bundles.
    pub fn parse(lines: &[u8]) -> Self {
        let mut read = Self {
            package: PackageParser::parse(lines),
            ..Self::default()
        };
        for line in lines.split(|byte| *byte == b'\n') {
            let header: BundleFields<'_> = serde_json::from_slice(line).unwrap_or_default();
            match &*header.schema {
                "olm.bundle" => {
                    let properties = read.bundles.entry(header.name.into_owned()).or_default();
                    header
                        .properties
                        .iter()
                        .flatten()
                        .for_each(|property| properties.add(property));
                }
                // One that cannot be read counts, so that another one beside it is not believed.
                LIFECYCLES => read.lifecycles.push(serde_json::from_slice(line).unwrap_or_default()),
                _ => {}
            }
        }
        read
    }
}

impl BundleProperties {
    fn add(&mut self, property: &PropertyFields<'_>) {
        let value = property.value.get();
        match &*property.kind {
            MAX_OPENSHIFT => self.max_openshift.push(value.to_owned()),
            "olm.gvk" => self
                .provides
                .extend(serde_json::from_str::<Gvk>(value).map(|gvk| gvk.text())),
            _ => {}
        }
        let requirement = property.requirement();
        self.requires
            .extend(requirement.and_then(|json| Constraint::parse(&json)));
    }
}
