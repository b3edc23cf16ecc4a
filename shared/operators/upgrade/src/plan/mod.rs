//! Ways from one version to another, and the order of steps before a cluster moves on.

mod draw;
mod installed;
mod operator;
mod support;
mod upgrade_plan;
mod ways;

pub use draw::{GraphFormat, draw};
pub use installed::{Installed, InstalledOperator, PlanError};
pub use operator::{BundleStep, PlannedOperator, UpgradeOrder, wrapped};
pub use support::{OpenShiftMinor, Support, SupportState};
pub use upgrade_plan::{PackageSet, PlanInput, UpgradePlan};
pub use ways::{ChannelWay, Ways};

#[cfg(test)]
mod tests;
