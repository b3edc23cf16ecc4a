//! Ways from one version of a package to another.

use std::collections::BTreeSet;

use model::text::did_you_mean;
use olm::{Package, UpgradeEntry, UpgradeGraph, UpgradeRule, UpgradeStart, comparable_version};
use serde::Serialize;

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

/// Bundle that is installed on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeStep {
    /// Name of the bundle.
    pub bundle: String,
    /// Version of the bundle, as the catalog writes it.
    pub version: Option<String>,
    /// Fields of its entry that offer the step.
    pub by: Vec<UpgradeRule>,
}

/// Text that is neither a version nor a bundle of the package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("package {package} has no version and no bundle {text:?}{similar}")]
pub struct UnknownVersion {
    package: String,
    text: String,
    similar: String,
}

impl UpgradeStep {
    /// Describes steps along entries of a channel.
    pub(crate) fn list(package: &Package, from: &UpgradeStart<'_>, steps: &[&UpgradeEntry<'_>]) -> Vec<Self> {
        let starts = steps.iter().map(|step| UpgradeStart::of_bundle(package, step.name));
        let starts = std::iter::once(from.clone()).chain(starts);
        let step = |(entry, start): (&&UpgradeEntry<'_>, UpgradeStart<'_>)| Self {
            bundle: entry.name.to_owned(),
            version: package
                .bundles
                .get(entry.name)
                .and_then(|bundle| bundle.version.clone()),
            by: entry.rules(&start).collect(),
        };
        steps.iter().zip(starts).map(step).collect()
    }

    /// Returns the version, or else the name of the bundle, for people.
    pub fn label(&self) -> &str {
        self.version.as_deref().unwrap_or(&self.bundle)
    }
}

impl Ways {
    /// Finds the fewest steps in each channel. `from` and `to` are versions or names of bundles.
    ///
    /// # Errors
    /// A version or bundle that the package does not have. `from` may be a version that is no longer there.
    pub fn new(name: &str, package: &Package, from: &str, to: Option<&str>) -> Result<Self, UnknownVersion> {
        let names = bundle_names(package);
        let unknown = |text: &str| {
            let versions = package.bundles.values().filter_map(|bundle| bundle.version.as_deref());
            UnknownVersion {
                package: name.to_owned(),
                text: text.to_owned(),
                similar: did_you_mean(text, versions.chain(names.iter().copied())),
            }
        };
        let start = match find_bundle(package, &names, from) {
            Some(bundle) => UpgradeStart::of_bundle(package, bundle),
            None => UpgradeStart {
                name: None,
                version: Some(comparable_version(from).ok_or_else(|| unknown(from))?),
            },
        };
        let goal = to.map(|to| find_bundle(package, &names, to).ok_or_else(|| unknown(to)));
        let goal = goal.transpose()?;
        let channels = package.channels.iter().flat_map(|(channel, content)| {
            let graph = UpgradeGraph::new(package, content);
            let goals = goal.map_or_else(|| content.heads(), |goal| vec![goal]);
            let is_default = package.default_channel.as_ref() == Some(channel);
            let way = move |(steps, reason)| ChannelWay {
                channel: channel.clone(),
                is_default,
                steps,
                reason,
            };
            let mut ways: Vec<ChannelWay> = goals
                .iter()
                .map(|goal| way(find(package, &graph, &start, goal)))
                .collect();
            if ways.is_empty() {
                ways.push(way((None, Some("the channel has no head".to_owned()))));
            }
            ways
        });
        Ok(Self {
            format_version: 1,
            package: name.to_owned(),
            from: from.to_owned(),
            to: to.map(str::to_owned),
            channels: channels.collect(),
        })
    }

    /// Returns true if a channel has a way.
    pub fn is_possible(&self) -> bool {
        self.channels.iter().any(|way| way.steps.is_some())
    }
}

/// Returns the steps to an entry, or the reason for which there are none.
fn find(
    package: &Package,
    graph: &UpgradeGraph<'_>,
    start: &UpgradeStart<'_>,
    goal: &str,
) -> (Option<Vec<UpgradeStep>>, Option<String>) {
    let has = |name: Option<&str>| graph.entries().iter().any(|entry| Some(entry.name) == name);
    if !has(Some(goal)) {
        return (None, Some(format!("{goal} is not in the channel")));
    }
    match graph.fewest_steps(start, goal) {
        Some(steps) => (Some(UpgradeStep::list(package, start, &steps)), None),
        None if graph.has_update(start) => (None, Some(format!("no way leads to {goal}"))),
        None if has(start.name) => (None, Some("no entry updates this version".to_owned())),
        None => (
            None,
            Some("the version is not in the channel, and no entry updates it".to_owned()),
        ),
    }
}

/// Returns the names of all bundles that the package has or names.
fn bundle_names(package: &Package) -> BTreeSet<&str> {
    let entries = package.channels.values().flat_map(|channel| &channel.entries);
    let named = entries.flat_map(|(name, entry)| entry.replaces.iter().chain(&entry.skips).chain([name]));
    named.chain(package.bundles.keys()).map(String::as_str).collect()
}

/// Returns the bundle that a text names by its name or its version.
pub(crate) fn find_bundle<'a>(package: &'a Package, names: &BTreeSet<&'a str>, text: &str) -> Option<&'a str> {
    let version = comparable_version(text);
    let has_version = |name: &&&str| version.is_some() && package.version_of(name) == version;
    let written = |name: &&&str| {
        package
            .bundles
            .get(**name)
            .is_some_and(|bundle| bundle.version.as_deref() == Some(text))
    };
    let named = names.get(text);
    // As it is written first: two versions may differ in build metadata alone.
    let found = named
        .or_else(|| names.iter().find(written))
        .or_else(|| names.iter().find(has_version));
    found.copied()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::testing::package;

    const CHANNELS: &str = "
        stable: 1.0.0; 1.1.0 <1.0.0; 1.2.0 <1.1.0 ~>=0.5.0_<1.0.0
        alpha: 1.0.0; 2.0.0+7 <1.0.0 -0.9.0
        empty:
        broken: 1.0.0 <1.1.0; 1.1.0 <1.0.0";

    #[rstest]
    #[case::heads(
        "1.0.0",
        None,
        "alpha 2.0.0+7; broken the channel has no head; empty the channel has no head; stable 1.1.0 1.2.0"
    )]
    #[case::leading_v("v1.0.0", Some("1.1.0"), "alpha -; broken 1.1.0; empty -; stable 1.1.0")]
    #[case::bundles("p.v1.0.0", Some("p.v2.0.0+7"), "alpha 2.0.0+7; broken -; empty -; stable -")]
    #[case::build_metadata_left_out("1.0.0", Some("2.0.0"), "alpha 2.0.0+7; broken -; empty -; stable -")]
    #[case::same("1.0.0", Some("1.0.0"), "alpha ; broken ; empty -; stable ")]
    #[case::gone_and_named("p.v0.9.0", Some("2.0.0"), "alpha 2.0.0+7; broken -; empty -; stable -")]
    #[case::gone_and_in_a_range("0.6.0", Some("1.2.0"), "alpha -; broken -; empty -; stable 1.2.0")]
    #[case::gone(
        "0.1.0",
        Some("1.2.0"),
        "alpha -; broken -; empty -; stable the version is not in the channel, and no entry updates it"
    )]
    #[case::back(
        "1.2.0",
        Some("1.1.0"),
        "alpha -; broken the version is not in the channel, and no entry updates it; empty -; stable no entry updates this version"
    )]
    #[case::beside(
        "1.1.0",
        Some("1.0.0"),
        "alpha -; broken 1.0.0; empty -; stable no way leads to p.v1.0.0"
    )]
    fn ways_tell_steps_or_reason(#[case] from: &str, #[case] to: Option<&str>, #[case] expected: &str) {
        let ways = Ways::new("p", &package(CHANNELS), from, to).unwrap();
        let texts = ways.channels.iter().map(|way| {
            let steps = way.steps.as_ref();
            let steps = steps.map(|steps| steps.iter().map(UpgradeStep::label).collect::<Vec<_>>().join(" "));
            // Most channels lack one of the two.
            let reason = way
                .reason
                .as_deref()
                .filter(|reason| !reason.ends_with("is not in the channel"));
            let reason = reason.filter(|reason| way.channel != "alpha" || !reason.contains("not in the channel"));
            format!("{} {}", way.channel, steps.as_deref().or(reason).unwrap_or("-"))
        });
        assert_eq!(texts.collect::<Vec<_>>().join("; "), expected);
        assert_eq!(ways.is_possible(), ways.channels.iter().any(|way| way.reason.is_none()));
    }

    #[rstest]
    #[case::from("1.0", None, "package p has no version and no bundle \"1.0\"")]
    #[case::to(
        "1.0.0",
        Some("1.2.1"),
        "package p has no version and no bundle \"1.2.1\" (did you mean 1.2.0?)"
    )]
    fn ways_of_unknown_version_are_refused(#[case] from: &str, #[case] to: Option<&str>, #[case] expected: &str) {
        let error = Ways::new("p", &package(CHANNELS), from, to).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn steps_name_fields_that_offer_them() {
        let ways = Ways::new("p", &package("c: 1.0.0; 1.1.0 <1.0.0 -1.0.0 ~<1.1.0"), "1.0.0", None).unwrap();
        let steps = ways.channels[0].steps.as_ref().unwrap();
        assert_eq!(
            steps[0].by,
            [UpgradeRule::Skips, UpgradeRule::SkipRange, UpgradeRule::Replaces]
        );
    }
}
