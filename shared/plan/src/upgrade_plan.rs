//! The order in which operators and their cluster move on.

use std::collections::BTreeSet;

use olm::{Day, DeprecationTarget, Package, UpgradeGraph, UpgradeStart, comparable_version};
use serde::Serialize;

use crate::{
    InstalledOperator, OpenShiftMinor, PackageSet, PlannedPackage, Support, SupportState, UpgradeStep,
    package::BundleProperties,
    provided::Provided,
    support::max_openshift,
    targets::{HeadWays, Position, choose, find_channel, start},
};

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

/// Order in which an operator and the cluster move on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpgradeOrder {
    /// The operator stays as it is until the cluster has moved: no step now leads to a version that goes on there.
    ClusterFirst,
    /// The operator must be updated before.
    OperatorFirst,
    /// The operator may be updated before or after.
    Either,
    /// Nothing leads on.
    #[default]
    NoWay,
}

/// Plan for one operator.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedOperator {
    /// Name of the package; empty if it is not known.
    pub package: String,
    /// Namespace of the installation.
    pub namespace: Option<String>,
    /// Name of the installed bundle.
    pub bundle: Option<String>,
    /// Installed version.
    pub version: Option<String>,
    /// Channel of the installation.
    pub channel: Option<String>,
    /// Catalog after the upgrade.
    pub catalog: Option<String>,
    /// Channel after the upgrade: another one if the present one is gone.
    pub target_channel: Option<String>,
    /// Order of the operator and the cluster.
    pub verdict: UpgradeOrder,
    /// Reason for which there is no way, for people.
    pub reason: Option<String>,
    /// Oldest version to which the operator must be updated before.
    pub at_least: Option<String>,
    /// Newest version to which it may be updated before.
    pub at_most: Option<String>,
    /// Steps that OLM v0 takes now, in the present catalog.
    pub now: Vec<UpgradeStep>,
    /// Steps that it takes afterwards: from the installed version, or else from `at_least`.
    pub after: Vec<UpgradeStep>,
    /// Deprecations of the package, the channel and the last bundle, in the catalog after the upgrade.
    pub deprecations: Vec<String>,
    /// Packages and APIs that the last bundle requires and nothing installed provides.
    pub missing: Vec<String>,
    /// Value of `olm.maxOpenShiftVersion` of the installed version.
    pub max_open_shift: Option<String>,
    /// Support of the installed version.
    pub support: Support,
    /// Support of the last version.
    pub target_support: Support,
}

impl UpgradePlan {
    /// Plans each operator.
    pub fn new(input: PlanInput<'_>) -> Self {
        let mut operators: Vec<PlannedOperator> = input.installed.iter().map(|operator| input.plan(operator)).collect();
        let provided = Provided::new(&input, &operators);
        for operator in &mut operators {
            let requires = input
                .properties(&operator.package, operator.last_bundle())
                .flat_map(|bundle| &bundle.requires);
            let missing: BTreeSet<String> = requires
                .filter(|one| !provided.fulfils(one))
                .map(ToString::to_string)
                .collect();
            operator.missing = missing.into_iter().collect();
        }
        Self {
            format_version: 1,
            cluster: input.cluster.map(|cluster| cluster.to_string()),
            on: input.on.to_string(),
            operators,
        }
    }

    /// Returns true if each operator has a way.
    pub fn is_possible(&self) -> bool {
        self.operators
            .iter()
            .all(|operator| operator.verdict != UpgradeOrder::NoWay)
    }

    /// Returns the numbers of verdicts in words.
    pub fn summary(&self) -> String {
        let count = |verdict| {
            self.operators
                .iter()
                .filter(|operator| operator.verdict == verdict)
                .count()
        };
        let ended = self
            .operators
            .iter()
            .filter(|operator| operator.target_support.state == SupportState::SelfSupport);
        format!(
            "{} operators: {} cluster first, {} operator first, {} either, {} no way; {} without support",
            self.operators.len(),
            count(UpgradeOrder::ClusterFirst),
            count(UpgradeOrder::OperatorFirst),
            count(UpgradeOrder::Either),
            count(UpgradeOrder::NoWay),
            ended.count(),
        )
    }
}

impl UpgradeOrder {
    /// Returns the verdict in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterFirst => "cluster first",
            Self::OperatorFirst => "operator first",
            Self::Either => "either",
            Self::NoWay => "no way",
        }
    }
}

impl PlannedOperator {
    /// Returns the bundle that is installed in the end.
    pub fn last_bundle(&self) -> Option<&str> {
        let last = self.after.last().map(|step| step.bundle.as_str());
        // Without steps afterwards it is the one to which the operator must be updated before.
        let before = self
            .now
            .iter()
            .find(|step| Some(step.label()) == self.at_least.as_deref());
        last.or(before.map(|step| step.bundle.as_str()))
            .or(self.bundle.as_deref())
    }

    /// Returns the version that is installed in the end.
    pub fn last_version(&self) -> Option<&str> {
        let last = self.after.last().map(UpgradeStep::label);
        last.or(self.at_least.as_deref()).or(self.version.as_deref())
    }

    /// Returns remarks for people.
    pub fn notes(&self) -> Vec<String> {
        let steps = |name: &str, steps: &[UpgradeStep]| {
            let labels: Vec<&str> = steps.iter().map(UpgradeStep::label).collect();
            (labels.len() > 1).then(|| format!("{name}: {}", labels.join(" -> ")))
        };
        let moved = self
            .target_channel
            .as_ref()
            .filter(|_| self.channel.is_some() && self.channel != self.target_channel);
        let is_unfit = self.target_support.is_compatible == Some(false);
        let notes = [
            self.reason.clone(),
            self.at_most
                .as_ref()
                .filter(|_| self.now.last().map(UpgradeStep::label) != self.at_most.as_deref())
                .map(|most| format!("before the cluster, not beyond {most}")),
            moved.map(|channel| format!("its channel is gone: switch to {channel}")),
            steps("steps now", &self.now),
            steps("steps afterwards", &self.after),
            is_unfit.then(|| "its last version is not for this version of OpenShift".to_owned()),
        ];
        let notes = notes.into_iter().flatten();
        let deprecations = self.deprecations.iter().map(|message| format!("deprecated: {message}"));
        notes
            .chain(deprecations)
            .chain(self.missing.iter().map(|what| format!("requires {what}")))
            .collect()
    }
}

impl<'a> PlanInput<'a> {
    fn plan(&self, operator: &'a InstalledOperator) -> PlannedOperator {
        let mut plan = PlannedOperator {
            package: operator.package.clone().unwrap_or_default(),
            namespace: operator.namespace.clone(),
            bundle: operator.bundle.clone(),
            version: operator.version.clone(),
            channel: operator.channel.clone(),
            ..PlannedOperator::default()
        };
        if let Err(reason) = self.find_ways(operator, &mut plan) {
            plan.reason = Some(reason);
        }
        plan.support = self.support(&plan, plan.version.as_deref());
        plan.target_support = self.support(&plan, plan.last_version());
        plan
    }

    fn find_ways(&self, operator: &'a InstalledOperator, plan: &mut PlannedOperator) -> Result<(), String> {
        let name = operator
            .package
            .as_deref()
            .ok_or("no Subscription and no annotation names its package")?;
        let from = choose(self.from, name, operator)?.map(|(_, package)| package);
        let target = choose(self.to, name, operator)?;
        let catalogs: Vec<&'a PlannedPackage> = from.into_iter().chain(target.map(|(_, package)| package)).collect();
        let start = start(operator, &catalogs);
        plan.bundle = start.name.map(str::to_owned).or_else(|| plan.bundle.take());
        let written = start.name.and_then(|name| {
            catalogs
                .iter()
                .find_map(|one| one.package.bundles.get(name)?.version.clone())
        });
        plan.version = plan.version.take().or(written);
        let default = catalogs.iter().find_map(|one| one.package.default_channel.clone());
        plan.channel = plan.channel.take().or(default);
        let channel = plan.channel.clone().ok_or("the catalogs do not have the package")?;
        let position = |start: UpgradeStart<'a>, label: String, values: Option<&Vec<String>>| {
            let blocked = self.blocked(start.name, &catalogs, values);
            Position { start, label, blocked }
        };
        let label = plan.version.clone().or_else(|| plan.bundle.clone()).unwrap_or_default();
        let mut positions = vec![position(start.clone(), label, operator.max_openshift.as_ref())];
        plan.max_open_shift = self
            .max_values(start.name, &catalogs, operator.max_openshift.as_ref())
            .first()
            .map(|value| value.trim_matches('"').to_owned());
        if let Some((package, content)) =
            from.and_then(|from| Some((&from.package, from.package.channels.get(&channel)?)))
        {
            let graph = UpgradeGraph::new(package, content);
            let steps = graph.olm_v0_steps(&start).unwrap_or_default();
            plan.now = UpgradeStep::list(package, &start, &steps);
            let starts = steps.iter().map(|step| UpgradeStart::of_bundle(package, step.name));
            positions.extend(
                starts
                    .zip(&plan.now)
                    .map(|(start, step)| position(start, step.label().to_owned(), None)),
            );
        }
        let (catalog, target) = target.ok_or("the catalog after the upgrade does not have the package")?;
        plan.catalog = Some(catalog.to_owned());
        let (target_channel, ways) = find_channel(&target.package, &channel, &positions)?;
        plan.target_channel = Some(target_channel.to_owned());
        plan.fit(&positions, &ways)?;
        let first = positions
            .iter()
            .position(|position| plan.at_least.as_ref().is_none_or(|least| *least == position.label));
        plan.after = first.and_then(|first| ways[first].clone()).unwrap_or_default();
        plan.deprecations = deprecations(&target.package, target_channel, plan.last_bundle());
        Ok(())
    }

    /// Returns the properties of a bundle in all catalogs, those of the present ones first.
    pub(crate) fn properties(&self, package: &str, bundle: Option<&str>) -> impl Iterator<Item = &'a BundleProperties> {
        let sets = [self.from.get(package), self.to.get(package)];
        let packages = sets.into_iter().flatten().flatten();
        packages.filter_map(move |(_, package)| package.bundles.get(bundle?))
    }

    fn max_values(
        &self,
        bundle: Option<&str>,
        catalogs: &[&'a PlannedPackage],
        installed: Option<&Vec<String>>,
    ) -> Vec<String> {
        let known = bundle.and_then(|name| catalogs.iter().find_map(|one| one.bundles.get(name)));
        installed
            .cloned()
            .or_else(|| known.map(|known| known.max_openshift.clone()))
            .unwrap_or_default()
    }

    /// Returns the reason for which OLM v0 stops the upgrade of the cluster while a bundle is installed.
    fn blocked(
        &self,
        bundle: Option<&str>,
        catalogs: &[&'a PlannedPackage],
        installed: Option<&Vec<String>>,
    ) -> Option<String> {
        let cluster = self.cluster?;
        match max_openshift(&self.max_values(bundle, catalogs, installed)) {
            Ok(Some(max)) if max < cluster => Some(format!("its olm.maxOpenShiftVersion is {max}")),
            Ok(_) => None,
            Err(error) => Some(format!("its olm.maxOpenShiftVersion cannot be read: {error}")),
        }
    }

    fn support(&self, plan: &PlannedOperator, version: Option<&str>) -> Support {
        let Some(version) = version.and_then(comparable_version) else {
            return Support::default();
        };
        let sets = [self.to.get(&plan.package), self.from.get(&plan.package)];
        // The catalog after the upgrade is the newer one.
        let documents = sets.into_iter().flatten().map(|found| {
            found
                .iter()
                .flat_map(|(_, package)| package.lifecycles.clone())
                .collect::<Vec<_>>()
        });
        let documents = documents.into_iter().find(|documents| !documents.is_empty());
        Support::of(&documents.unwrap_or_default(), &version, self.on, self.cluster)
    }
}

impl PlannedOperator {
    /// Sets the verdict from the versions before the upgrade and their ways afterwards.
    fn fit(&mut self, positions: &[Position<'_>], ways: &HeadWays) -> Result<(), String> {
        let fits = |number: &usize| ways[*number].is_some() && positions[*number].blocked.is_none();
        let later: Vec<usize> = (1..positions.len()).filter(fits).collect();
        self.verdict = match (fits(&0), later.first()) {
            (true, None) => UpgradeOrder::ClusterFirst,
            (true, Some(_)) => UpgradeOrder::Either,
            (false, Some(first)) => {
                self.at_least = Some(positions[*first].label.clone());
                UpgradeOrder::OperatorFirst
            }
            (false, None) => {
                let number = ways.iter().rposition(Option::is_some).unwrap_or_default();
                let (label, blocked) = (&positions[number].label, &positions[number].blocked);
                let why = blocked
                    .as_deref()
                    .unwrap_or("the catalog after the upgrade has no way from it");
                return Err(format!("{label} stops the upgrade of the cluster: {why}"));
            }
        };
        self.at_most = later.last().map(|last| positions[*last].label.clone());
        Ok(())
    }
}

fn deprecations(package: &Package, channel: &str, bundle: Option<&str>) -> Vec<String> {
    let targets = [
        ("olm.package", "", "package"),
        ("olm.channel", channel, "channel"),
        ("olm.bundle", bundle.unwrap_or_default(), "bundle"),
    ];
    let message = |(schema, name, kind): &(&str, &str, &str)| {
        let target = DeprecationTarget {
            schema: (*schema).to_owned(),
            name: (*name).to_owned(),
        };
        package
            .deprecations
            .get(&target)
            .map(|message| format!("{kind} {name}: {message}").replace(" :", ":"))
    };
    targets.iter().filter_map(message).collect()
}

#[cfg(test)]
mod tests;
