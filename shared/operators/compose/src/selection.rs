use std::{collections::BTreeSet, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::VersionConstraint;

/// Selection of packages, channels and bundles of one catalog, with the meaning of an oc-mirror v2
/// ImageSetConfiguration.
///
/// Without packages it takes all of them. Without `full`, a range or bundles it takes the heads of
/// the channels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selection {
    /// Takes every bundle instead of the heads. Default false.
    pub full: bool,
    /// Packages to take; all if empty.
    pub packages: Vec<PackageSelection>,
}

/// Selection within one package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PackageSelection {
    /// Name of the package.
    pub name: String,
    /// Takes every bundle of the package, or of the named channels. Default false.
    pub full: bool,
    /// Lowest version to take, such as `2.11.0` or `2.11`. It counts for each channel.
    pub min_version: Option<String>,
    /// Highest version to take. It counts for each channel.
    pub max_version: Option<String>,
    /// Range of versions to take, in place of `minVersion` and `maxVersion`.
    pub version_range: Option<String>,
    /// Default channel of the result; needed if the catalog's own is not selected.
    pub default_channel: Option<String>,
    /// Channels to take; all if empty.
    pub channels: Vec<ChannelSelection>,
    /// Bundles to take, in place of everything above except `defaultChannel`.
    pub selected_bundles: Vec<SelectedBundle>,
}

/// Selection within one channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ChannelSelection {
    /// Name of the channel.
    pub name: String,
    /// Takes every bundle of the channel. Default false.
    pub full: bool,
    /// Lowest version to take.
    pub min_version: Option<String>,
    /// Highest version to take.
    pub max_version: Option<String>,
    /// Range of versions to take, in place of `minVersion` and `maxVersion`.
    pub version_range: Option<String>,
}

/// Bundle that is selected by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectedBundle {
    /// Name of the bundle, such as `etcdoperator.v0.9.4`.
    pub name: String,
}

/// Rule by which the entries of one channel are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryRule {
    All,
    Head,
    Range(VersionConstraint),
    /// The bundles of `selectedBundles`.
    Named,
}

impl Selection {
    /// Checks the parts that exclude each other. An error names the place and the fields.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for package in &self.packages {
            let place = format!("package {}", package.name);
            check_name(&place, &package.name, &mut names)?;
            package.check(self.full)?;
        }
        Ok(())
    }

    /// Returns true if bundles of the package are selected.
    pub fn takes(&self, package: &str) -> bool {
        self.of_package(package).is_some()
    }

    /// Returns the selection within a package, or `None` if nothing of it is taken.
    pub(crate) fn of_package(&self, package: &str) -> Option<PackageSelection> {
        let mut selection = if self.packages.is_empty() {
            PackageSelection {
                name: package.to_owned(),
                ..PackageSelection::default()
            }
        } else {
            let mut packages = self.packages.iter();
            packages
                .find(|selection| selection.name == package)?
                .clone()
        };
        if self.full {
            selection.full = true;
        }
        Some(selection)
    }
}

impl PackageSelection {
    fn check(&self, all_full: bool) -> Result<(), String> {
        let place = &*format!("package {}", self.name);
        let full = self.full || all_full;
        let range = self.range();
        let has_range = self.has_range();
        if !self.selected_bundles.is_empty() && (full || has_range || !self.channels.is_empty()) {
            let problem = "selectedBundles stand alone: remove channels, versions and full";
            return Err(format!("{place}: {problem}"));
        }
        check_range(place, full, &range)?;
        let mut names = BTreeSet::new();
        for channel in &self.channels {
            let place = format!("{place}, channel {}", channel.name);
            check_name(&place, &channel.name, &mut names)?;
            let own = channel.range();
            check_range(&place, full || channel.full, &own)?;
            if has_range && (own != Ok(None) || channel.full) {
                let problem = "the package has a range of versions too: write it at the package or at the channels";
                return Err(format!("{place}: {problem}"));
            }
        }
        Ok(())
    }

    /// Returns true if the whole package is selected, so that its lines need not be read.
    pub(crate) const fn takes_whole(&self) -> bool {
        self.full && self.channels.is_empty() && self.default_channel.is_none()
    }

    /// Returns the rule for a channel, or `None` if the channel is not selected.
    pub(crate) fn rule(&self, channel: &str) -> Option<EntryRule> {
        if !self.selected_bundles.is_empty() {
            return Some(EntryRule::Named);
        }
        let channel = self
            .channels
            .iter()
            .find(|selection| selection.name == channel);
        if channel.is_none() && !self.channels.is_empty() {
            return None;
        }
        if self.full || channel.is_some_and(|channel| channel.full) {
            return Some(EntryRule::All);
        }
        // `check` has accepted the ranges.
        let own = channel.and_then(|channel| channel.range().ok()?);
        match own.or_else(|| self.range().ok()?) {
            Some(range) => Some(EntryRule::Range(range)),
            None => Some(EntryRule::Head),
        }
    }

    /// Returns true if a range of versions is written at the package, for all of its channels.
    pub(crate) fn has_range(&self) -> bool {
        self.range() != Ok(None)
    }

    fn range(&self) -> Result<Option<VersionConstraint>, String> {
        read_range(
            self.min_version.as_deref(),
            self.max_version.as_deref(),
            self.version_range.as_deref(),
        )
    }
}

impl ChannelSelection {
    fn range(&self) -> Result<Option<VersionConstraint>, String> {
        read_range(
            self.min_version.as_deref(),
            self.max_version.as_deref(),
            self.version_range.as_deref(),
        )
    }
}

/// Reads `minVersion`, `maxVersion` and `versionRange`; `None` if none is there. An error continues
/// the name of the place.
fn read_range(
    min: Option<&str>,
    max: Option<&str>,
    range: Option<&str>,
) -> Result<Option<VersionConstraint>, String> {
    let Some(range) = range else {
        return VersionConstraint::between(min, max);
    };
    if min.is_some() || max.is_some() {
        return Err(": versionRange excludes minVersion and maxVersion".to_owned());
    }
    let range = VersionConstraint::from_str(range).map_err(|part| {
        format!(", versionRange: {part:?}: a range of versions is written as \">=1.0.0 <2.0.0\"")
    })?;
    Ok(Some(range))
}

fn check_range(
    place: &str,
    full: bool,
    range: &Result<Option<VersionConstraint>, String>,
) -> Result<(), String> {
    match range {
        Err(problem) => Err(format!("{place}{problem}")),
        Ok(Some(_)) if full => Err(format!(
            "{place}: full: true takes every version: remove it, or the versions"
        )),
        Ok(_) => Ok(()),
    }
}

/// Adds a name to those that were seen before.
fn check_name<'a>(place: &str, name: &'a str, names: &mut BTreeSet<&'a str>) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("{place}: it has no name"));
    }
    if !names.insert(name) {
        return Err(format!("{place}: it is named twice"));
    }
    Ok(())
}
