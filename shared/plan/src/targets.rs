//! Catalogs and channels that an operator has after the upgrade, and the ways to their heads.

use std::collections::BTreeMap;

use olm::{ChainError, Channel, Package, UpgradeGraph, UpgradeStart, comparable_version};

use crate::{InstalledOperator, PlannedPackage, UpgradeStep};

/// Packages of catalogs by name, each with the catalogs that have it.
pub type PackageSet = BTreeMap<String, Vec<(String, PlannedPackage)>>;

/// Version of an operator before the upgrade of the cluster, and where it can go afterwards.
pub(crate) struct Position<'a> {
    pub(crate) start: UpgradeStart<'a>,
    pub(crate) label: String,
    /// Reason for which the cluster cannot be upgraded while it is installed.
    pub(crate) blocked: Option<String>,
}

/// Returns the package in the one catalog that has it. Of several it is the one that has the installed bundle.
pub(crate) fn choose<'a>(
    set: &'a PackageSet,
    name: &str,
    operator: &InstalledOperator,
) -> Result<Option<(&'a str, &'a PlannedPackage)>, String> {
    let found = set.get(name).map(Vec::as_slice).unwrap_or_default();
    let has = |package: &&(String, PlannedPackage)| {
        let start = start(operator, &[&package.1]);
        start
            .name
            .is_some_and(|name| package.1.package.bundles.contains_key(name))
    };
    let with: Vec<&(String, PlannedPackage)> = found.iter().filter(has).collect();
    match (found, with.as_slice()) {
        ([], _) => Ok(None),
        ([(catalog, package)], _) | (_, [(catalog, package)]) => Ok(Some((catalog, package))),
        _ => {
            let catalogs: Vec<&str> = found.iter().map(|(catalog, _)| catalog.as_str()).collect();
            Err(format!("several catalogs have the package: {}", catalogs.join(", ")))
        }
    }
}

/// Returns the installed bundle with what the catalogs know of it.
pub(crate) fn start<'a>(operator: &'a InstalledOperator, catalogs: &[&'a PlannedPackage]) -> UpgradeStart<'a> {
    let version = operator.version.as_deref().and_then(comparable_version);
    let by_version = || {
        let mut bundles = catalogs
            .iter()
            .flat_map(|one| one.package.bundles.keys().map(move |name| (one, name)));
        let found = bundles.find(|(one, name)| version.is_some() && one.package.version_of(name) == version);
        found.map(|(_, name)| name.as_str())
    };
    let name = operator.bundle.as_deref().or_else(by_version);
    let known = name.and_then(|name| catalogs.iter().find_map(|one| one.package.version_of(name)));
    UpgradeStart {
        name,
        version: version.or(known),
    }
}

/// Steps to the head of a channel from each version before the upgrade, where there are any.
pub(crate) type HeadWays = Vec<Option<Vec<UpgradeStep>>>;

/// Returns the channel after the upgrade, and the steps to its head from each version before. Another channel than the present one is
/// chosen only if that is gone: the default one first.
pub(crate) fn find_channel<'a>(
    package: &'a Package,
    present: &'a str,
    positions: &[Position<'_>],
) -> Result<(&'a str, HeadWays), String> {
    let leads = |channel: &&'a str| {
        head_ways(package, &package.channels[*channel], positions).is_ok_and(|ways| ways.iter().any(Option::is_some))
    };
    // False sorts before true.
    let mut others: Vec<&str> = package.channels.keys().map(String::as_str).collect();
    others.sort_by_key(|name| package.default_channel.as_deref() != Some(*name));
    if let Some(channel) = package.channels.get(present) {
        let broken = |error: ChainError| format!("channel {present} is broken after the upgrade: {error}");
        let ways = head_ways(package, channel, positions).map_err(broken)?;
        if ways.iter().any(Option::is_some) {
            return Ok((present, ways));
        }
        let other = others
            .into_iter()
            .find(leads)
            .map(|other| format!("; channel {other} has one"))
            .unwrap_or_default();
        return Err(format!(
            "after the upgrade, channel {present} has no way to its head from any version before{other}"
        ));
    }
    let other = others
        .into_iter()
        .find(leads)
        .ok_or_else(|| format!("channel {present} is gone after the upgrade, and no other one leads on"))?;
    let ways = head_ways(package, &package.channels[other], positions).unwrap_or_default();
    Ok((other, ways))
}

pub(crate) fn head_ways(
    package: &Package,
    channel: &Channel,
    positions: &[Position<'_>],
) -> Result<HeadWays, ChainError> {
    let graph = UpgradeGraph::new(package, channel);
    let head = graph.chain()?.first().map(|head| head.name);
    let way = |position: &Position<'_>| {
        let steps = graph.olm_v0_steps(&position.start)?;
        let last = steps.last().map(|step| step.name).or(position.start.name);
        Ok((last == head).then(|| UpgradeStep::list(package, &position.start, &steps)))
    };
    positions.iter().map(way).collect()
}
