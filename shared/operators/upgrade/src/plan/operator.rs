//! The plan for one operator, and its words for people.

use std::{collections::BTreeSet, iter};

use olm::UpgradeStep;
use serde::Serialize;

use crate::plan::{InstalledOperator, Support};

/// Largest width of a remark, in characters.
const NOTE_CHARS: usize = 100;

/// Order in which an operator and the cluster move on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpgradeOrder {
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

/// Plan for one operator.
#[derive(Debug, Default, Serialize)]
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
    pub now: Vec<UpgradeStep>,
    /// Steps that it takes afterwards: from the installed version, or else from `at_least`.
    pub after: Vec<UpgradeStep>,
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
    /// Catalog of the steps now.
    #[serde(skip)]
    pub(crate) present_catalog: Option<String>,
    /// Number of steps that must be taken before the upgrade of the cluster.
    #[serde(skip)]
    pub(crate) before: usize,
}

/// Changes by the bundle of a step that want a look before it is taken.
#[derive(Debug, Serialize)]
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
    pub fn way(&self) -> Vec<UpgradeStep> {
        let steps = self.now[..self.before].iter().chain(&self.after);
        iter::once(self.installed.step())
            .chain(steps.cloned())
            .collect()
    }

    /// Returns the bundle that is installed in the end.
    pub fn last(&self) -> UpgradeStep {
        self.way().pop().unwrap_or_default()
    }

    /// Returns remarks for people.
    pub fn notes(&self) -> Vec<String> {
        let steps = |name: &str, steps: &[UpgradeStep]| {
            (steps.len() > 1).then(|| format!("{name}: {}", UpgradeStep::labels(steps)))
        };
        let last = self.now.last().map(UpgradeStep::label);
        let most = self.at_most.as_deref().filter(|most| last != Some(*most));
        let (present, target) = (&self.installed.channel, &self.target_channel);
        let moved = target
            .as_ref()
            .filter(|_| present.is_some() && present != target);
        let is_unfit = self.target_support.is_compatible == Some(false);
        let notes = [
            self.reason.clone(),
            most.map(|most| format!("before the cluster, not beyond {most}")),
            moved.map(|channel| format!("its channel is gone: switch to {channel}")),
            steps("steps now", &self.now),
            steps("steps afterwards", &self.after),
            is_unfit.then(|| "its last version is not for this version of OpenShift".to_owned()),
        ];
        let deprecations = self
            .deprecations
            .iter()
            .map(|message| format!("deprecated: {message}"));
        let missing = self.missing.iter().map(|what| format!("requires {what}"));
        let bundles = self.bundles.iter().filter_map(BundleStep::note);
        let notes = notes.into_iter().flatten().chain(deprecations);
        notes.chain(missing).chain(bundles).collect()
    }
}

impl BundleStep {
    fn note(&self) -> Option<String> {
        let (unsafe_changes, permissions) = (self.unsafe_changes, self.gained_permissions);
        let steps = format!("{} -> {}", self.from, self.to);
        let changes =
            format!("unsafe changes: {unsafe_changes}, gained permissions: {permissions}");
        (unsafe_changes + permissions > 0).then(|| format!("{steps}: {changes}"))
    }
}

/// Breaks a text at spaces into lines that fit into 100 columns, unless a word does not. Continued
/// lines are indented.
pub fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let fits = |line: &String| line.chars().count() + 1 + word.chars().count() <= NOTE_CHARS;
        match lines.last_mut() {
            Some(line) if fits(line) => *line += &format!(" {word}"),
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}
