//! Ways from one version of a package to another.

use model::text::did_you_mean;
use olm::{Channel, Package, UpgradeGraph, UpgradeStep, comparable_version};
use serde::Serialize;

use crate::plan::PlanError;

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
    /// A version or bundle that the package does not have. `from` may be a version that is no
    /// longer there.
    pub fn new(
        name: &str,
        package: &Package,
        from: &str,
        to: Option<&str>,
    ) -> Result<Self, PlanError> {
        let unknown = |text: &str| {
            let versions = package
                .bundles
                .values()
                .filter_map(|bundle| bundle.version.as_deref());
            let similar = did_you_mean(text, versions.chain(bundle_names(package)));
            PlanError::Refused(format!(
                "package {name} has no version and no bundle {text:?}{similar}"
            ))
        };
        let find = |text: &str| {
            let named = bundle_names(package).find(|name| *name == text);
            named
                .or_else(|| package.bundle_of(text))
                .ok_or_else(|| unknown(text))
        };
        let start = match find(from) {
            Ok(bundle) => UpgradeStep::start(bundle, package.version_of(bundle)),
            Err(error) if comparable_version(from).is_none() => return Err(error),
            Err(_) => UpgradeStep::start("", Some(from)),
        };
        let goal = to.map(find).transpose()?;
        let mut channels = Vec::new();
        for (channel, content) in &package.channels {
            let mut goals = goal.map_or_else(|| content.heads(), |goal| vec![goal]);
            if goals.is_empty() {
                goals.push("");
            }
            for goal in goals {
                let way = find_way(package, content, &start, goal);
                channels.push(ChannelWay {
                    channel: channel.clone(),
                    is_default: package.default_channel.as_ref() == Some(channel),
                    reason: way.as_ref().err().cloned(),
                    steps: way.ok(),
                });
            }
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

/// Returns the steps to an entry, or the reason for which there are none.
fn find_way(
    package: &Package,
    channel: &Channel,
    start: &UpgradeStep,
    goal: &str,
) -> Result<Vec<UpgradeStep>, String> {
    let graph = UpgradeGraph::new(package, channel);
    let has = |name: &str| channel.entries.contains_key(name);
    let steps = graph.fewest_steps(start, goal).filter(|_| has(goal));
    let has_update = || graph.updates(start).any(|step| step.bundle != start.bundle);
    steps.ok_or_else(|| match goal {
        "" => "the channel has no head".to_owned(),
        _ if !has(goal) => format!("{goal} is not in the channel"),
        _ if has_update() => format!("no way leads to {goal}"),
        _ if has(&start.bundle) => "no entry updates this version".to_owned(),
        _ => "the version is not in the channel, and no entry updates it".to_owned(),
    })
}

/// Returns the names of all bundles that the package has or names.
fn bundle_names(package: &Package) -> impl Iterator<Item = &str> {
    let entries = package
        .channels
        .values()
        .flat_map(|channel| &channel.entries);
    let named = entries.flat_map(|(name, entry)| entry.updated().chain([name.as_str()]));
    named.chain(package.bundles.keys().map(String::as_str))
}
