//! The order in which operators and their cluster move on.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::iter;

use olm::{
    Channel, Constraint, Day, Package, RequiredPackage, UpgradeGraph, UpgradeStep, VersionRange,
    comparable_version,
};
use semver::Version;
use serde::Serialize;
use serde_json::{Value, json};

use crate::plan::{
    InstalledOperator, OpenShiftMinor, PlannedOperator, Support, SupportState, UpgradeOrder,
};

/// Packages by name, each by the source of the catalog that has it.
pub type PackageSet = BTreeMap<String, BTreeMap<String, Package>>;

/// State of a cluster, and where it goes.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// Installed operators.
    pub installed: &'a [InstalledOperator],
    /// Packages of the present catalogs.
    pub from: &'a PackageSet,
    /// Packages of the catalogs after the upgrade of the cluster.
    pub to: &'a PackageSet,
    /// Version of OpenShift after the upgrade. Without it `olm.maxOpenShiftVersion` does not count.
    pub cluster: Option<OpenShiftMinor>,
    /// Day for which the support is told.
    pub on: Day,
}

/// Plan for the operators of a cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradePlan {
    /// 1. A change of the fields that are here increases it.
    pub format_version: u32,
    /// Version of OpenShift after the upgrade.
    pub cluster: Option<String>,
    /// Day for which the support is told.
    pub on: String,
    /// Operators in the order of the input.
    pub operators: Vec<PlannedOperator>,
}

/// Version of an operator before the upgrade of the cluster: the installed one, or that of a step
/// now.
struct Position {
    step: UpgradeStep,
    /// Reason for which the cluster cannot be upgraded while it is installed.
    blocked: Option<String>,
    /// True if OLM v0 gets to the head afterwards.
    leads_on: bool,
}

impl UpgradePlan {
    /// Plans each operator.
    pub fn new(input: PlanInput<'_>) -> Self {
        let mut operators: Vec<PlannedOperator> = input
            .installed
            .iter()
            .map(|operator| input.plan(operator))
            .collect();
        let missing = input.missing(&operators);
        iter::zip(&mut operators, missing).for_each(|(row, missing)| row.missing = missing);
        Self {
            format_version: 1,
            cluster: input.cluster.map(|cluster| cluster.to_string()),
            on: input.on.to_string(),
            operators,
        }
    }

    /// Returns true if each operator has a way.
    pub fn is_possible(&self) -> bool {
        self.count(UpgradeOrder::NoWay) == 0
    }

    /// Returns the numbers of verdicts in words.
    pub fn summary(&self) -> String {
        use UpgradeOrder::{ClusterFirst, Either, NoWay, OperatorFirst};

        let orders = [ClusterFirst, OperatorFirst, Either, NoWay];
        let counts = orders.map(|order| format!("{} {}", self.count(order), order.as_str()));
        let (counts, rows) = (counts.join(", "), &self.operators);
        let is_ended =
            |row: &&PlannedOperator| row.target_support.state == SupportState::SelfSupport;
        let ended = rows.iter().filter(is_ended).count();
        format!(
            "{} operators: {counts}; {ended} without support",
            rows.len()
        )
    }

    fn count(&self, order: UpgradeOrder) -> usize {
        self.operators
            .iter()
            .filter(|row| row.verdict == order)
            .count()
    }

    /// Returns the ImageSetConfiguration of oc-mirror v2 with the steps and the heads of their
    /// channels: in the present catalogs what must be installed before, and in those after the
    /// upgrade all that follows.
    pub fn image_set(&self) -> Value {
        // Steps by catalog, package and channel.
        let mut wanted: BTreeMap<_, BTreeMap<_, BTreeMap<_, Vec<UpgradeStep>>>> = BTreeMap::new();
        for row in self
            .operators
            .iter()
            .filter(|row| row.verdict != UpgradeOrder::NoWay)
        {
            let before = row.now[..row.before].to_vec();
            let after = [row.after.as_slice(), &[row.last()]].concat();
            let parts = [
                (&row.present_catalog, &row.installed.channel, before),
                (&row.catalog, &row.target_channel, after),
            ];
            for (catalog, channel, steps) in parts {
                if !steps.is_empty() {
                    let packages = wanted.entry(catalog).or_default();
                    let channels = packages.entry(&row.installed.package).or_default();
                    channels.entry(channel).or_default().extend(steps);
                }
            }
        }
        let operators = wanted.into_iter().map(|(catalog, packages)| {
            let packages = packages.into_iter().map(|(package, channels)| {
                let first = channels.keys().next().copied().cloned();
                let channels = channels.into_iter().map(|(channel, mut steps)| {
                    steps.sort_by_key(|step| comparable_version(step.label()));
                    let [least, most] = [steps.first(), steps.last()].map(|step| step.map(UpgradeStep::label));
                    json!({"name": channel, "minVersion": least, "maxVersion": most})
                });
                json!({"name": package, "defaultChannel": first, "channels": channels.collect::<Vec<_>>()})
            });
            json!({"catalog": catalog, "packages": packages.collect::<Vec<_>>()})
        });
        json!({
            "apiVersion": "mirror.openshift.io/v2alpha1",
            "kind": "ImageSetConfiguration",
            "mirror": {"operators": operators.collect::<Vec<_>>()},
        })
    }
}

impl PlanInput<'_> {
    fn plan(&self, operator: &InstalledOperator) -> PlannedOperator {
        let mut row = PlannedOperator {
            installed: operator.clone(),
            ..PlannedOperator::default()
        };
        row.reason = self.find_way(&mut row).err();
        row.support = self.support(&row, &row.installed.step());
        row.target_support = self.support(&row, &row.last());
        row
    }

    /// Sets the verdict and the steps.
    fn find_way(&self, row: &mut PlannedOperator) -> Result<(), String> {
        if row.installed.package.is_empty() {
            return Err("no Subscription and no annotation names its package".to_owned());
        }
        let from = choose(self.from, &row.installed)?;
        let to = choose(self.to, &row.installed)?;
        let packages: Vec<&Package> = from
            .into_iter()
            .chain(to)
            .map(|(_, package)| package)
            .collect();
        row.installed.complete(&packages);
        let channel = row.installed.channel.clone();
        let channel = channel.ok_or("the catalogs do not have the package")?;
        let max = row.installed.max_openshift.as_deref().unwrap_or_default();
        row.max_open_shift = max.first().cloned();
        let start = row.installed.step();
        let mut positions = vec![self.position(&start, max)];
        if let Some((catalog, package)) = from {
            row.present_catalog = Some(catalog.clone());
            let content = package.channels.get(&channel);
            // A broken channel offers no steps.
            let graph = content.and_then(|content| UpgradeGraph::of_olm_v0(package, content).ok());
            row.now = graph.map_or_else(Vec::new, |graph| graph.first_steps(&start));
            let max = |step: &UpgradeStep| {
                Some(package.bundles.get(&step.bundle)?.max_openshift.as_slice())
            };
            let position = |step| self.position(step, max(step).unwrap_or_default());
            positions.extend(row.now.iter().map(position));
        }
        let (catalog, package) =
            to.ok_or("the catalog after the upgrade does not have the package")?;
        row.catalog = Some(catalog.clone());
        let target = find_channel(package, &channel, &mut positions)?;
        row.target_channel = Some(target.to_owned());
        let fits = |position: &Position| position.leads_on && position.blocked.is_none();
        let Some(least) = positions.iter().position(fits) else {
            let mut leading = positions.into_iter().filter(|position| position.leads_on);
            return Err(leading
                .next_back()
                .and_then(|last| last.blocked)
                .unwrap_or_default());
        };
        let most = positions.iter().rposition(fits).unwrap_or(least);
        row.verdict = match (least, most) {
            (0, 0) => UpgradeOrder::ClusterFirst,
            (0, _) => UpgradeOrder::Either,
            _ => UpgradeOrder::OperatorFirst,
        };
        [row.at_least, row.at_most] =
            [least, most].map(|at| Some(row.now[at.checked_sub(1)?].label().to_owned()));
        row.before = least;
        let graph = UpgradeGraph::of_olm_v0(package, &package.channels[target]);
        row.after = graph.map_or_else(
            |_| Vec::new(),
            |graph| graph.first_steps(&positions[least].step),
        );
        let last = row.last().bundle;
        let targets = [("package", ""), ("channel", target), ("bundle", &last)];
        let deprecation = |(kind, name): &(&str, &str)| {
            let message = package.deprecation(&format!("olm.{kind}"), name)?;
            Some(format!(
                "{}: {message}",
                format!("{kind} {name}").trim_end()
            ))
        };
        row.deprecations = targets.iter().filter_map(deprecation).collect();
        Ok(())
    }

    /// Describes a version before the upgrade from the values of its `olm.maxOpenShiftVersion`.
    fn position(&self, step: &UpgradeStep, max: &[String]) -> Position {
        // As OLM v0 holds it against the cluster.
        let fault = self.cluster.and_then(|cluster| match max {
            [] => None,
            [value] => match value.parse::<OpenShiftMinor>() {
                Ok(max) => (max < cluster).then(|| format!("is {max}")),
                Err(error) => Some(format!("cannot be read: {error}")),
            },
            _ => Some("cannot be read: there are several".to_owned()),
        });
        let stops = format!("{} stops the upgrade of the cluster: its", step.label());
        Position {
            step: step.clone(),
            blocked: fault.map(|fault| format!("{stops} olm.maxOpenShiftVersion {fault}")),
            leads_on: false,
        }
    }

    /// Returns the support of a bundle, by the catalogs after the upgrade if they tell it: they are
    /// newer.
    fn support(&self, row: &PlannedOperator, step: &UpgradeStep) -> Support {
        let packages = |set| packages(set, &row.installed.package);
        let documents = |set| {
            packages(set)
                .flat_map(|package| &package.lifecycles)
                .collect()
        };
        let [newer, older]: [Vec<&String>; 2] = [self.to, self.from].map(documents);
        let documents = if newer.is_empty() { older } else { newer };
        Support::of(&documents, step.label(), self.on, self.cluster)
    }

    /// Returns the packages and APIs that the last bundle of each operator requires and no operator
    /// provides, now or in the end.
    fn missing(&self, rows: &[PlannedOperator]) -> Vec<BTreeSet<String>> {
        let bundles = |package: &str, step: &UpgradeStep| {
            let packages = [self.from, self.to]
                .into_iter()
                .flat_map(|set| packages(set, package));
            let bundles = packages.filter_map(|package| package.bundles.get(&step.bundle));
            bundles.collect::<Vec<_>>()
        };
        let (mut apis, mut versions) = (HashSet::new(), HashMap::<&str, Vec<Version>>::new());
        for row in rows {
            let package = row.installed.package.as_str();
            for step in [row.installed.step(), row.last()] {
                apis.extend(
                    bundles(package, &step)
                        .into_iter()
                        .flat_map(|bundle| &bundle.provides),
                );
                let versions = versions.entry(package).or_default();
                versions.extend(comparable_version(step.label()));
            }
        }
        let has_package = |required: &RequiredPackage| {
            let range = VersionRange::parse(&required.version_range);
            let versions = versions.get(&*required.package_name).zip(range);
            versions.is_some_and(|(versions, range)| {
                versions.iter().any(|version| range.contains(version))
            })
        };
        let has = |constraint: &Constraint| {
            constraint
                .gvk
                .as_ref()
                .is_none_or(|api| apis.contains(&api.text()))
                && constraint
                    .package
                    .as_ref()
                    .is_none_or(|package| has_package(package))
        };
        let missing = |row: &PlannedOperator| {
            let last = bundles(&row.installed.package, &row.last());
            let requires = last.into_iter().flat_map(|bundle| &bundle.requires);
            let missing =
                requires.filter_map(|json| Constraint::parse(json).filter(|one| !one.is_met(&has)));
            missing.map(|constraint| constraint.to_string()).collect()
        };
        rows.iter().map(missing).collect()
    }
}

fn packages<'a>(set: &'a PackageSet, name: &str) -> impl Iterator<Item = &'a Package> {
    set.get(name).into_iter().flat_map(BTreeMap::values)
}

/// Returns the package in the one catalog that has it. Of several it is the one that has the
/// installed bundle.
fn choose<'a>(
    set: &'a PackageSet,
    operator: &InstalledOperator,
) -> Result<Option<(&'a String, &'a Package)>, String> {
    let mut found: Vec<_> = set.get(&operator.package).into_iter().flatten().collect();
    let catalogs: Vec<&str> = found.iter().map(|(catalog, _)| catalog.as_str()).collect();
    if found.len() > 1 {
        found.retain(|(_, package)| operator.is_in(package));
        if found.len() != 1 {
            return Err(format!(
                "several catalogs have the package: {}",
                catalogs.join(", ")
            ));
        }
    }
    Ok(found.pop())
}

/// Returns the channel after the upgrade, and sets the ways to its head. Another channel than the
/// present one is chosen only if that is gone: the default one first.
fn find_channel<'a>(
    package: &'a Package,
    present: &str,
    positions: &mut [Position],
) -> Result<&'a str, String> {
    let mut channels: Vec<(&String, &Channel)> = package.channels.iter().collect();
    // False sorts before true.
    channels.sort_by_key(|(name, _)| {
        (
            *name != present,
            package.default_channel.as_ref() != Some(name),
        )
    });
    let is_there = package.channels.contains_key(present);
    let no_way = format!(
        "after the upgrade, channel {present} has no way to its head from any version before"
    );
    let broken = format!("channel {present} is broken after the upgrade");
    for (name, channel) in channels {
        match find_ways(package, channel, positions) {
            Ok(true) if name == present || !is_there => return Ok(name),
            Ok(true) => return Err(format!("{no_way}; channel {name} has one")),
            Err(fault) if name == present => return Err(format!("{broken}: {fault}")),
            _ => {}
        }
    }
    let gone = format!("channel {present} is gone after the upgrade, and no other one leads on");
    Err(if is_there { no_way } else { gone })
}

/// Sets the ways to the head of a channel. Returns false if there is none.
fn find_ways(
    package: &Package,
    channel: &Channel,
    positions: &mut [Position],
) -> Result<bool, String> {
    let graph = UpgradeGraph::of_olm_v0(package, channel).map_err(|fault| fault.to_string())?;
    let head = graph.entries.first().map(|head| head.name);
    for position in positions.iter_mut() {
        // The way itself is not kept: a chain has as many positions as steps.
        let way = graph.first_steps(&position.step);
        let last = way.last().unwrap_or(&position.step);
        position.leads_on = Some(&*last.bundle) == head;
    }
    Ok(positions.iter().any(|position| position.leads_on))
}
