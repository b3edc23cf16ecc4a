//! Ways from one version of a package to another.

use model::text::did_you_mean;
use olm::{BundleVersions, Channel, Package, UpgradeGraph, UpgradeStep, comparable_version};
use serde::Serialize;

use crate::plan::PlanError;
use crate::{Bounds, Exceeded};

/// Ways from one version of a package to another, channel by channel.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ways {
    /// 1. A change of the fields that are here increases it.
    pub format_version: u32,
    /// Name of the package.
    pub package: String,
    /// Version or bundle from which the ways start, as it was asked.
    pub from: String,
    /// Version or bundle to which they lead. `None`: the head of each channel.
    pub to: Option<String>,
    /// Channels by name, with one element for each head if there are several.
    pub channels: Vec<ChannelWay>,
}

/// Way along one channel, or the reason for which there is none.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelWay {
    /// Name of the channel.
    pub channel: String,
    /// True for the default channel of the package.
    pub is_default: bool,
    /// Steps without the start, in their order. `None` if there is no way.
    pub steps: Option<Vec<UpgradeStep>>,
    /// Reason for which there is no way, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Ways {
    /// Finds the fewest steps in each channel. `from` and `to` are versions or names of bundles.
    ///
    /// # Errors
    /// A version or bundle that the package does not have, and bounds that are exceeded. `from` may
    /// be a version that is no longer there.
    pub fn new(
        name: &str,
        package: &Package,
        from: &str,
        to: Option<&str>,
        bounds: &Bounds,
    ) -> Result<Self, PlanError> {
        let versions = BundleVersions::new(package);
        let start = match find(package, &versions, from) {
            Some(bundle) => UpgradeStep::start(bundle, package.version_of(bundle)),
            None if comparable_version(from).is_none() => {
                return Err(unknown_error(name, package, from));
            }
            None => UpgradeStep::start("", Some(from)),
        };
        let goal = match to {
            Some(to) => {
                let bundle = find(package, &versions, to);
                Some(bundle.ok_or_else(|| unknown_error(name, package, to))?)
            }
            None => None,
        };
        let search = WaySearch {
            package,
            start,
            goal,
            bounds,
        };
        let mut channels = Vec::new();
        for (channel, content) in &package.channels {
            let ways = search.ways(channel, content);
            channels.extend(ways.map_err(|exceeded| {
                PlanError::exceeded(exceeded, &format!("package {name}, channel {channel}"))
            })?);
        }
        Ok(Self {
            format_version: 1,
            package: name.to_owned(),
            from: from.to_owned(),
            to: to.map(str::to_owned),
            channels,
        })
    }

    /// Returns true if a channel has a way.
    pub fn is_possible(&self) -> bool {
        self.channels.iter().any(|way| way.steps.is_some())
    }
}

/// Question about ways, without the channel.
struct WaySearch<'a> {
    package: &'a Package,
    start: UpgradeStep,
    /// Bundle to which the ways lead. `None`: the heads.
    goal: Option<&'a str>,
    bounds: &'a Bounds,
}

impl WaySearch<'_> {
    /// Finds the ways along a channel.
    fn ways(&self, name: &str, channel: &Channel) -> Result<Vec<ChannelWay>, Exceeded> {
        let graph = UpgradeGraph::new(self.package, channel, &self.bounds.budget)?;
        let fewest = graph.fewest_steps(&self.start, &self.bounds.budget)?;
        let mut goals = match self.goal {
            Some(goal) => vec![goal],
            None => channel.heads(),
        };
        if goals.is_empty() {
            goals.push("");
        }
        let mut ways = Vec::with_capacity(goals.len());
        for goal in goals {
            let is_there = channel.entries.contains_key(goal);
            let steps = if is_there { fewest.to(goal) } else { None };
            let reason = match &steps {
                Some(_) => None,
                None if goal.is_empty() => Some("the channel has no head".to_owned()),
                None if !is_there => Some(format!("{goal} is not in the channel")),
                None if fewest.is_any() => Some(format!("no way leads to {goal}")),
                None if channel.entries.contains_key(&self.start.bundle) => {
                    Some("no entry updates this version".to_owned())
                }
                None => {
                    Some("the version is not in the channel, and no entry updates it".to_owned())
                }
            };
            let way = ChannelWay {
                channel: name.to_owned(),
                is_default: self.package.default_channel.as_deref() == Some(name),
                steps,
                reason,
            };
            self.bounds.answer(way.bytes())?;
            ways.push(way);
        }
        Ok(ways)
    }
}

impl ChannelWay {
    /// Returns about the size of the way in memory, in bytes.
    fn bytes(&self) -> usize {
        let steps = self.steps.iter().flatten().map(step_bytes);
        let reason = self.reason.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.channel.len() + reason + steps.sum::<usize>()
    }
}

/// Returns about the size of a step in memory, in bytes.
pub(crate) fn step_bytes(step: &UpgradeStep) -> usize {
    size_of::<UpgradeStep>() + step.bundle.len() + step.version.as_ref().map_or(0, String::len)
}

/// Returns the bundle with this name or version.
fn find<'a>(package: &'a Package, versions: &BundleVersions<'a>, text: &str) -> Option<&'a str> {
    bundle_names(package)
        .find(|name| *name == text)
        .or_else(|| versions.bundle_of(text))
}

fn unknown_error(name: &str, package: &Package, text: &str) -> PlanError {
    PlanError::Refused(unknown_version(name, [package], text))
}

/// Returns the problem of a version or bundle that packages of this name do not have, with a similar
/// one.
pub(crate) fn unknown_version<'a>(
    name: &str,
    packages: impl IntoIterator<Item = &'a Package>,
    text: &str,
) -> String {
    let known = packages.into_iter().flat_map(|package| {
        let bundles = package.bundles.values();
        let versions = bundles.filter_map(|bundle| bundle.version.as_deref());
        versions.chain(bundle_names(package))
    });
    let similar = did_you_mean(text, known);
    format!("package {name} has no version and no bundle {text:?}{similar}")
}

/// Returns the names of all bundles that the package has or names.
pub(crate) fn bundle_names(package: &Package) -> impl Iterator<Item = &str> {
    let entries = package
        .channels
        .values()
        .flat_map(|channel| &channel.entries);
    let named = entries.flat_map(|(name, entry)| entry.updated().chain([name.as_str()]));
    named.chain(package.bundles.keys().map(String::as_str))
}
