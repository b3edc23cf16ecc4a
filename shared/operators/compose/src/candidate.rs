//! Packages that may be taken along.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use olm::Channel;
use semver::Version;

use crate::dependencies::{BundleDependencies, Dependencies};
use crate::kept_channel::{self, KeptEntries};
use crate::lines::PackageReader;
use crate::outline::PackageOutline;
use crate::{ComposeError, PackageSelection, SelectedBundle};

/// Reason for each bundle, or for the whole package with an empty name.
pub(crate) type IncludeReasons = BTreeMap<Rc<str>, Rc<str>>;

/// Package of an input that the result does not have.
pub(crate) struct IncludeCandidate {
    pub(crate) input: usize,
    pub(crate) default_channel: String,
    pub(crate) channels: BTreeMap<String, Channel>,
    pub(crate) bundles: Vec<BundleDependencies>,
    /// Number of the bundle of a channel with each version; of several the highest by name.
    pub(crate) by_version: BTreeMap<Version, usize>,
    /// Number of the highest bundle of a channel that provides each API.
    pub(crate) by_api: HashMap<Rc<str>, usize>,
}

impl IncludeCandidate {
    /// Returns the package, unless it has no valid default channel or cannot be read, so that OLM
    /// would refuse it.
    pub(crate) fn new(
        input: usize,
        package: &str,
        lines: &mut PackageReader,
        dependencies: &mut Dependencies,
    ) -> Result<Option<Self>, ComposeError> {
        let mut outline = PackageOutline::default();
        let mut bundles: Vec<BundleDependencies> = Vec::new();
        lines.for_each(|line| {
            bundles.extend(dependencies.read(package, line)?);
            outline.add(package, line)
        })?;

        let Some(default_channel) = outline.default_channel.take() else {
            return Ok(None);
        };
        if !outline.channels.contains_key(&default_channel)
            || outline.check_readable(package).is_err()
        {
            return Ok(None);
        }
        dependencies.count(package, outline.bytes)?;

        let channels = outline.channels;
        let mut offered: HashSet<&str> = HashSet::new();
        for channel in channels.values() {
            offered.extend(channel.entries.keys().map(String::as_str));
        }
        // By version, then by name, so that the last one that is entered is the highest.
        bundles.sort_by(|one, other| {
            let by_version = one.version.cmp(&other.version);
            by_version.then_with(|| one.name.cmp(&other.name))
        });
        let mut by_version = BTreeMap::new();
        let mut by_api = HashMap::new();
        for (at, bundle) in bundles.iter().enumerate() {
            if !offered.contains(&*bundle.name) {
                continue;
            }
            if let Some(version) = &bundle.version {
                by_version.insert(version.clone(), at);
            }
            for api in &bundle.apis {
                by_api.insert(api.clone(), at);
            }
        }
        Ok(Some(Self {
            input,
            default_channel,
            channels,
            bundles,
            by_version,
            by_api,
        }))
    }

    /// Returns true if each channel is valid with these bundles alone.
    pub(crate) fn connects(&self, bundles: &IncludeReasons) -> bool {
        for channel in self.channels.values() {
            let mut kept = KeptEntries::new();
            for entry in channel.entries.keys() {
                if bundles.contains_key(entry.as_str()) {
                    kept.insert(entry);
                }
            }
            // A channel that is gone or unchanged is as valid as its catalog has it.
            if kept.is_empty() || kept.len() == channel.entries.len() {
                continue;
            }
            if kept_channel::check(channel, &kept).is_err() {
                return false;
            }
        }
        true
    }

    /// Returns the selection of these bundles. If none of them is in the default channel, the first
    /// channel that has one takes its place.
    pub(crate) fn selection(&self, name: &str, bundles: &IncludeReasons) -> PackageSelection {
        let default = &self.channels[&self.default_channel];
        let mut default_channel = None;
        if !has_any(default, bundles) {
            let mut channels = self.channels.iter();
            let first = channels.find(|(_, channel)| has_any(channel, bundles));
            default_channel = first.map(|(name, _)| name.clone());
        }
        let selected_bundles = bundles.keys().map(|bundle| SelectedBundle {
            name: bundle.to_string(),
        });
        PackageSelection {
            name: name.to_owned(),
            default_channel,
            selected_bundles: selected_bundles.collect(),
            ..PackageSelection::default()
        }
    }
}

/// Returns true if the channel has an entry for one of the bundles.
fn has_any(channel: &Channel, bundles: &IncludeReasons) -> bool {
    let mut entries = channel.entries.keys();
    entries.any(|entry| bundles.contains_key(entry.as_str()))
}
