#![doc = include_str!("../README.md")]

mod draw;
mod image_set;
mod installed;
mod package;
mod provided;
mod support;
mod table;
mod targets;
#[cfg(test)]
mod testing;
mod upgrade_plan;
mod ways;

pub use draw::{GraphFormat, draw};
pub use image_set::image_set;
pub use installed::{Installed, InstalledError, InstalledOperator};
pub use package::PlannedPackage;
pub use support::{OpenShiftMinor, OpenShiftMinorError, Support, SupportState};
pub use table::{HEADS, wrapped};
pub use targets::PackageSet;
pub use upgrade_plan::{PlanInput, PlannedOperator, UpgradeOrder, UpgradePlan};
pub use ways::{ChannelWay, UnknownVersion, UpgradeStep, Ways};
