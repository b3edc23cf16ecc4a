use std::{collections::BTreeSet, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::VersionConstraint;

/// Selection of packages, channels and bundles of one catalog, with the meaning of an oc-mirror v2 ImageSetConfiguration.
///
/// Without packages it takes all of them. Without `full`, a range or bundles it takes the heads of the channels.
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
    /// Name of the bundle.
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
            check_name(&place, &package.name, names.insert(&package.name))?;
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
        let named = self.packages.iter().find(|selection| selection.name == package);
        let unnamed = || self.packages.is_empty().then(PackageSelection::default);
        let selection = named.cloned().or_else(unnamed)?;
        Some(PackageSelection {
            name: package.to_owned(),
            full: selection.full || self.full,
            ..selection
        })
    }
}

impl PackageSelection {
    fn check(&self, all_full: bool) -> Result<(), String> {
        let place = &*format!("package {}", self.name);
        let (full, bounds) = (self.full || all_full, self.bounds());
        if !self.selected_bundles.is_empty() && (full || bounds.is_some() || !self.channels.is_empty()) {
            let problem = "selectedBundles stand alone: remove channels, versions and full";
            return Err(format!("{place}: {problem}"));
        }
        bounds.check(place, full)?;
        let mut names = BTreeSet::new();
        for channel in &self.channels {
            let place = format!("{place}, channel {}", channel.name);
            check_name(&place, &channel.name, names.insert(&channel.name))?;
            channel.bounds().check(&place, full || channel.full)?;
            if bounds.is_some() && (channel.bounds().is_some() || channel.full) {
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
        let channel = self.channels.iter().find(|selection| selection.name == channel);
        if channel.is_none() && !self.channels.is_empty() {
            return None;
        }
        if self.full || channel.is_some_and(|channel| channel.full) {
            return Some(EntryRule::All);
        }
        let range = channel.and_then(|channel| channel.bounds().range());
        let range = range.or_else(|| self.bounds().range());
        Some(range.map_or(EntryRule::Head, EntryRule::Range))
    }

    fn bounds(&self) -> VersionBounds<'_> {
        VersionBounds::new([&self.min_version, &self.max_version, &self.version_range])
    }
}

impl ChannelSelection {
    fn bounds(&self) -> VersionBounds<'_> {
        VersionBounds::new([&self.min_version, &self.max_version, &self.version_range])
    }
}

/// Versions to take of a package or channel.
#[derive(Clone, Copy)]
struct VersionBounds<'a> {
    min: Option<&'a str>,
    max: Option<&'a str>,
    range: Option<&'a str>,
}

impl<'a> VersionBounds<'a> {
    fn new(texts: [&'a Option<String>; 3]) -> Self {
        let [min, max, range] = texts.map(Option::as_deref);
        Self { min, max, range }
    }

    const fn is_some(self) -> bool {
        self.min.is_some() || self.max.is_some() || self.range.is_some()
    }

    /// Returns the range, which [`Self::check`] has accepted.
    fn range(self) -> Option<VersionConstraint> {
        match self.range {
            Some(range) => range.parse().ok(),
            None => VersionConstraint::between(self.min, self.max),
        }
    }

    fn check(self, place: &str, full: bool) -> Result<(), String> {
        if full && self.is_some() {
            return Err(format!(
                "{place}: full: true takes every version: remove it, or the versions"
            ));
        }
        if self.range.is_some() && (self.min.is_some() || self.max.is_some()) {
            return Err(format!("{place}: versionRange excludes minVersion and maxVersion"));
        }
        for (field, bound) in [("minVersion", self.min), ("maxVersion", self.max)] {
            if let Some(bound) = bound.filter(|bound| !VersionConstraint::is_bound(bound)) {
                let problem = "this is not a version such as 2.11.0 or 2.11";
                return Err(format!("{place}, {field} {bound:?}: {problem}"));
            }
        }
        if let Some(Err(part)) = self.range.map(VersionConstraint::from_str) {
            let problem = "a range of versions is written as \">=1.0.0 <2.0.0\"";
            return Err(format!("{place}, versionRange: {part:?}: {problem}"));
        }
        let mut bounds = self.min.into_iter().zip(self.max);
        if bounds.any(|(min, max)| VersionConstraint::is_empty_between(min, max)) {
            return Err(format!("{place}: minVersion is higher than maxVersion"));
        }
        Ok(())
    }
}

fn check_name(place: &str, name: &str, is_new: bool) -> Result<(), String> {
    match (name.is_empty(), is_new) {
        (true, _) => Err(format!("{place}: it has no name")),
        (false, false) => Err(format!("{place}: it is named twice")),
        (false, true) => Ok(()),
    }
}
