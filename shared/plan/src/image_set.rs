//! The ImageSetConfiguration of a plan.

use std::collections::BTreeMap;

use olm::comparable_version;
use serde_json::{Value, json};

use crate::{PackageSet, UpgradeOrder, UpgradePlan, UpgradeStep};

/// Channels of packages of catalogs, each with the versions that it must have.
type WantedVersions<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeMap<&'a str, Vec<&'a str>>>>;

/// Returns the ImageSetConfiguration of oc-mirror v2 with the steps of a plan and the heads of their channels: in the present catalogs
/// what must be installed before, and in those after the upgrade all that follows.
pub fn image_set(plan: &UpgradePlan, from: &PackageSet) -> Value {
    let mut wanted = WantedVersions::new();
    for operator in plan
        .operators
        .iter()
        .filter(|operator| operator.verdict != UpgradeOrder::NoWay)
    {
        let present = from.get(&operator.package).and_then(|found| found.first());
        if let (UpgradeOrder::OperatorFirst, Some((catalog, _)), Some(channel)) =
            (operator.verdict, present, &operator.channel)
        {
            let last = operator
                .now
                .iter()
                .position(|step| Some(step.label()) == operator.at_least.as_deref());
            let steps = operator.now.iter().take(last.map_or(0, |last| last + 1));
            versions_of(&mut wanted, catalog, &operator.package, channel).extend(steps.map(UpgradeStep::label));
        }
        if let (Some(catalog), Some(channel)) = (&operator.catalog, &operator.target_channel) {
            let steps = operator.after.iter().map(UpgradeStep::label);
            versions_of(&mut wanted, catalog, &operator.package, channel).extend(steps.chain(operator.last_version()));
        }
    }
    let operators = wanted.iter().map(|(catalog, packages)| {
        let packages = packages.iter().map(|(package, channels)| {
            let first = channels.keys().next();
            let channels = channels.iter().map(|(channel, versions)| {
                let least = versions.iter().min_by_key(|version| comparable_version(version));
                let most = versions.iter().max_by_key(|version| comparable_version(version));
                json!({"name": channel, "minVersion": least, "maxVersion": most})
            });
            json!({"name": package, "defaultChannel": first, "channels": channels.collect::<Vec<_>>()})
        });
        json!({"catalog": catalog, "packages": packages.collect::<Vec<_>>()})
    });
    let operators: Vec<Value> = operators.collect();
    json!({
        "apiVersion": "mirror.openshift.io/v2alpha1",
        "kind": "ImageSetConfiguration",
        "mirror": {"operators": operators},
    })
}

fn versions_of<'w, 'a>(
    wanted: &'w mut WantedVersions<'a>,
    catalog: &'a str,
    package: &'a str,
    channel: &'a str,
) -> &'w mut Vec<&'a str> {
    let channels = wanted.entry(catalog).or_default().entry(package).or_default();
    channels.entry(channel).or_default()
}
