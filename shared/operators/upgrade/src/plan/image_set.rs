//! The steps of a plan as a selection of images.

use std::collections::{BTreeMap, HashSet};

use olm::{UpgradeStep, UpgradeWay, comparable_version};
use serde_json::{Value, json};

use crate::plan::{PlannedOperator, UpgradeOrder, UpgradePlan};

/// Packages by catalog.
#[derive(Default)]
struct WantedSteps<'a>(BTreeMap<Option<&'a str>, WantedPackages<'a>>);

/// Channels by package.
type WantedPackages<'a> = BTreeMap<&'a str, WantedChannels<'a>>;

/// Channels by name.
type WantedChannels<'a> = BTreeMap<Option<&'a str>, WantedChannel<'a>>;

/// Steps of a channel, each once.
#[derive(Default)]
struct WantedChannel<'a> {
    steps: Vec<&'a UpgradeStep>,
    /// Numbers of the entries of the steps.
    entries: HashSet<usize>,
    /// Numbers of the entries from which all that follows is there.
    followed: HashSet<usize>,
}

impl UpgradePlan {
    /// Returns the ImageSetConfiguration of oc-mirror v2 with the steps and the heads of their
    /// channels: in the present catalogs what must be installed before, and in those after the
    /// upgrade all that follows.
    pub fn image_set(&self) -> Value {
        let mut wanted = WantedSteps::default();
        for row in &self.operators {
            if row.verdict != UpgradeOrder::NoWay {
                wanted.add(row);
            }
        }
        json!({
            "apiVersion": "mirror.openshift.io/v2alpha1",
            "kind": "ImageSetConfiguration",
            "mirror": {"operators": wanted.entries()},
        })
    }
}

impl<'a> WantedSteps<'a> {
    fn add(&mut self, row: &'a PlannedOperator) {
        if row.before > 0 {
            let catalog = row.present_source.as_deref();
            let channel = row.installed.channel.as_deref();
            let present = self.channel(catalog, &row.installed.package, channel);
            present.add(&row.now, row.before);
        }
        let catalog = row.target_source.as_deref();
        let channel = row.target_channel.as_deref();
        let target = self.channel(catalog, &row.installed.package, channel);
        target.follow(&row.after);
        target.steps.push(&row.last);
    }

    fn channel(
        &mut self,
        catalog: Option<&'a str>,
        package: &'a str,
        channel: Option<&'a str>,
    ) -> &mut WantedChannel<'a> {
        let packages = self.0.entry(catalog).or_default();
        let channels = packages.entry(package).or_default();
        channels.entry(channel).or_default()
    }

    /// Returns an entry for each catalog.
    fn entries(self) -> Vec<Value> {
        let mut entries = Vec::new();
        for (catalog, wanted) in self.0 {
            let mut packages = Vec::new();
            for (package, channels) in wanted {
                let first = channels.keys().next().copied().flatten();
                let channels: Vec<Value> = channels
                    .into_iter()
                    .map(|(name, channel)| channel.entry(name))
                    .collect();
                packages.push(json!({
                    "name": package,
                    "defaultChannel": first,
                    "channels": channels,
                }));
            }
            entries.push(json!({"catalog": catalog, "packages": packages}));
        }
        entries
    }
}

impl<'a> WantedChannel<'a> {
    /// Adds the first steps of a way.
    fn add(&mut self, way: &'a UpgradeWay, count: usize) {
        for (step, entry) in way.steps().zip(way.entries()).take(count) {
            if self.entries.insert(entry) {
                self.steps.push(step);
            }
        }
    }

    /// Adds the steps of a way, up to one from which another way has gone on before.
    fn follow(&mut self, way: &'a UpgradeWay) {
        for (step, entry) in way.steps().zip(way.entries()) {
            if !self.followed.insert(entry) {
                return;
            }
            self.steps.push(step);
        }
    }

    /// Returns the channel with its first and its last version.
    fn entry(mut self, name: Option<&str>) -> Value {
        self.steps
            .sort_by_cached_key(|step| comparable_version(step.label()));
        json!({
            "name": name,
            "minVersion": self.steps.first().map(|step| step.label()),
            "maxVersion": self.steps.last().map(|step| step.label()),
        })
    }
}
