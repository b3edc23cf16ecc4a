//! Ways from one version to another, and the order of steps before a cluster moves on.

mod cluster_objects;
mod draw;
mod error;
mod image_set;
mod input;
mod installed;
mod known;
mod operator;
mod package_graph;
mod planner;
mod requirements;
mod sources;
mod support;
mod upgrade_plan;
mod ways;

pub use draw::{GraphFormat, draw};
pub use error::PlanError;
pub use input::{Installed, InstalledOperator, PlanCatalog, PlanInput, StepApproval};
pub use operator::{BundleStep, PlannedOperator, UpgradeOrder};
pub use package_graph::{ChannelEntries, EntryGraph, PackageGraph};
pub use support::{OpenShiftMinor, Support, SupportState};
pub use upgrade_plan::UpgradePlan;
pub use ways::{ChannelWay, Ways};

#[cfg(test)]
mod tests;
