//! The ImageSetConfiguration of a plan.

use std::collections::BTreeMap;

use olm::{UpgradeStep, comparable_version};
use serde_json::{Value, json};

use crate::{UpgradeOrder, UpgradePlan};

/// Returns the ImageSetConfiguration of oc-mirror v2 with the steps of a plan and the heads of their channels: in the present catalogs
/// what must be installed before, and in those after the upgrade all that follows.
pub fn image_set(plan: &UpgradePlan) -> Value {
    // Steps by catalog, package and channel.
    let mut wanted: BTreeMap<_, BTreeMap<_, BTreeMap<_, Vec<UpgradeStep>>>> = BTreeMap::new();
    for row in plan.operators.iter().filter(|row| row.verdict != UpgradeOrder::NoWay) {
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
