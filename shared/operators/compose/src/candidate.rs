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
        let (mut outline, mut bundles) =
            (PackageOutline::default(), Vec::<BundleDependencies>::new());
        lines.for_each(|line| {
            bundles.extend(dependencies.read(package, line)?);
            outline.add(package, line)
        })?;
        let default = outline.default_channel.take();
        let default = default.filter(|name| outline.channels.contains_key(name));
        let Some(default_channel) = default.filter(|_| outline.check_readable(package).is_ok())
        else {
            return Ok(None);
        };
        let channels = outline.channels;
        dependencies.count(package, outline.bytes)?;
        let entries = channels.values().flat_map(|channel| channel.entries.keys());
        let offered: HashSet<&str> = entries.map(String::as_str).collect();
        // By version, then by name, so that the last one that is entered is the highest.
        bundles.sort_by(|one, other| (&one.version, &one.name).cmp(&(&other.version, &other.name)));
        let (mut by_version, mut by_api) = (BTreeMap::new(), HashMap::new());
        let offers = |bundle: &BundleDependencies| offered.contains(&*bundle.name);
        for (at, bundle) in bundles
            .iter()
            .enumerate()
            .filter(|(_, bundle)| offers(bundle))
        {
            by_version.extend(bundle.version.clone().map(|version| (version, at)));
            by_api.extend(bundle.apis.iter().map(|api| (api.clone(), at)));
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
        self.channels.values().all(|channel| {
            let kept = channel.entries.keys().map(String::as_str);
            let kept: KeptEntries<'_> = kept.filter(|entry| bundles.contains_key(*entry)).collect();
            kept.is_empty()
                || kept.len() == channel.entries.len()
                || kept_channel::check(channel, &kept).is_ok()
        })
    }

    /// Returns the selection of these bundles. If none of them is in the default channel, the first
    /// channel that has one takes its place.
    pub(crate) fn selection(&self, name: &str, bundles: &IncludeReasons) -> PackageSelection {
        let has = |channel: &Channel| {
            channel
                .entries
                .keys()
                .any(|entry| bundles.contains_key(entry.as_str()))
        };
        let has_default = self.channels.get(&self.default_channel).is_some_and(has);
        let mut channels = self.channels.iter();
        let other = channels.find(|(_, channel)| !has_default && has(channel));
        let bundles = bundles.keys().map(|name| SelectedBundle {
            name: name.to_string(),
        });
        PackageSelection {
            name: name.to_owned(),
            default_channel: other.map(|(channel, _)| channel.clone()),
            selected_bundles: bundles.collect(),
            ..PackageSelection::default()
        }
    }
}
