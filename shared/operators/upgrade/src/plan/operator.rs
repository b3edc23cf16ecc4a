//! The plan for one operator, and its words for people.

use std::collections::BTreeSet;
use std::iter;

use olm::{UpgradeStep, UpgradeWay};
use serde::Serialize;

use crate::plan::{InstalledOperator, Support};

/// Number of characters after which the steps in a remark end with an ellipsis. Fewer are printed.
const STEPS_CHARS: usize = 2000;

/// Order in which an operator and the cluster move on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpgradeOrder {
    /// Nothing is to do: the installed version is the last one also after the upgrade.
    Stays,
    /// The operator stays as it is until the cluster has moved: no step now leads to a version that
    /// goes on there.
    ClusterFirst,
    /// The operator must be updated before.
    OperatorFirst,
    /// The operator may be updated before or after.
    Either,
    /// Nothing leads on.
    #[default]
    NoWay,
}

/// Plan for one operator: its ways before and after the upgrade of the cluster, and the verdict.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedOperator {
    /// Operator as it is installed, with what the catalogs know of it.
    #[serde(flatten)]
    pub installed: InstalledOperator,
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
    pub now: UpgradeWay,
    /// Steps that it takes afterwards: from the installed version, or else from `at_least`.
    pub after: UpgradeWay,
    /// Further steps and warnings, for people.
    pub remarks: Vec<String>,
    /// Deprecations of the package, the channel and the last bundle, in the catalog after the
    /// upgrade.
    pub deprecations: Vec<String>,
    /// Packages and APIs that the last bundle requires and nothing installed provides.
    pub missing: BTreeSet<String>,
    /// Changes by the bundles on the way, if they were compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bundles: Vec<BundleStep>,
    /// Value of `olm.maxOpenShiftVersion` of the installed version.
    pub max_open_shift: Option<String>,
    /// Support of the installed version.
    pub support: Support,
    /// Support of the last version.
    pub target_support: Support,
    /// Name for people: the package, and the namespace if several operators are of this package.
    #[serde(skip)]
    pub label: String,
    /// Bundle that is installed in the end.
    #[serde(skip)]
    pub last: UpgradeStep,
    /// Source of the catalog of the steps now.
    #[serde(skip)]
    pub(crate) present_source: Option<String>,
    /// Source of the catalog after the upgrade.
    #[serde(skip)]
    pub(crate) target_source: Option<String>,
    /// Number of steps that must be taken before the upgrade of the cluster.
    #[serde(skip)]
    pub(crate) before: usize,
    /// True if the steps now end beyond `at_most`.
    #[serde(skip)]
    pub(crate) goes_beyond: bool,
}

/// Changes by the bundle of a step that want a look before it is taken.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleStep {
    /// Version before the step, or the bundle without one.
    pub from: String,
    /// Version after the step.
    pub to: String,
    /// Number of changes of CustomResourceDefinitions for which OLM v1 stops the step.
    pub unsafe_changes: usize,
    /// Number of permissions that service accounts gain.
    pub gained_permissions: usize,
}

impl UpgradeOrder {
    /// Returns the verdict in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stays => "stays",
            Self::ClusterFirst => "cluster first",
            Self::OperatorFirst => "operator first",
            Self::Either => "either",
            Self::NoWay => "no way",
        }
    }
}

impl PlannedOperator {
    /// Returns all bundles on the way: the installed one, those before the upgrade of the cluster,
    /// and those afterwards.
    pub fn way(&self) -> impl Iterator<Item = UpgradeStep> {
        let steps = self.now.steps().take(self.before).chain(self.after.steps());
        iter::once(self.installed.step()).chain(steps.cloned())
    }

    /// Returns about the size of its texts in memory, in bytes, without the steps and
    /// what is missing.
    pub(crate) fn bytes(&self) -> usize {
        let installed = &self.installed;
        let texts = [
            &installed.namespace,
            &installed.bundle,
            &installed.version,
            &installed.channel,
            &installed.source,
            &installed.pin,
            &self.reason,
            &self.max_open_shift,
            &self.support.phase,
            &self.target_support.phase,
        ];
        let lists = self.deprecations.iter().chain(&self.remarks);
        let all = texts.into_iter().flatten().chain(lists);
        // The label has the package too.
        size_of::<Self>() + 2 * installed.package.len() + all.map(String::len).sum::<usize>()
    }

    /// Returns remarks for people.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.reason.clone());
        notes.extend_from_slice(&self.remarks);
        if let Some(most) = &self.at_most
            && self.goes_beyond
        {
            notes.push(format!("before the cluster, not beyond {most}"));
        }
        if let Some(channel) = &self.target_channel
            && self.installed.channel.is_some()
            && self.installed.channel != self.target_channel
        {
            notes.push(format!("its channel is gone: switch to {channel}"));
        }
        for (name, way) in [("steps now", &self.now), ("steps afterwards", &self.after)] {
            if way.len() > 1 {
                notes.push(format!("{name}: {}", labels(way)));
            }
        }
        if self.target_support.is_compatible == Some(false) {
            notes.push("its last version is not for this version of OpenShift".to_owned());
        }
        for message in &self.deprecations {
            notes.push(format!("deprecated: {message}"));
        }
        for what in &self.missing {
            notes.push(format!("requires {what}"));
        }
        notes.extend(self.bundles.iter().filter_map(BundleStep::note));
        notes
    }
}

/// Returns the labels of the steps, with an ellipsis in place of what is too long to be read.
fn labels(way: &UpgradeWay) -> String {
    let mut text = String::new();
    let mut chars = 0;
    for step in way.steps() {
        if chars > STEPS_CHARS {
            return text + " -> ...";
        }
        if !text.is_empty() {
            text += " -> ";
        }
        text += step.label();
        chars += 4 + step.label().chars().count();
    }
    text
}

impl BundleStep {
    fn note(&self) -> Option<String> {
        if self.unsafe_changes + self.gained_permissions == 0 {
            return None;
        }
        Some(format!(
            "{} -> {}: unsafe changes: {}, gained permissions: {}",
            self.from, self.to, self.unsafe_changes, self.gained_permissions
        ))
    }
}
