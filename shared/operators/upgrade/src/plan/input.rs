//! Input of a plan: the operators and catalogs of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use olm::{Day, Package, UpgradeStep};
use serde::Serialize;

use crate::plan::OpenShiftMinor;

/// Operator that a cluster has, as far as the input tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstalledOperator {
    /// Name of the package, or of the ClusterServiceVersion if nothing tells its package.
    pub package: String,
    /// Namespace, if it is known.
    pub namespace: Option<String>,
    /// Name of the bundle, if it is known.
    pub bundle: Option<String>,
    /// Version, if it is known.
    pub version: Option<String>,
    /// Channel, if one was chosen.
    pub channel: Option<String>,
    /// Name of the CatalogSource or ClusterCatalog that it comes from, if one is chosen.
    pub source: Option<String>,
    /// Approval of the steps, for a Subscription.
    pub install_plan_approval: Option<StepApproval>,
    /// Version or range that a ClusterExtension allows.
    #[serde(rename = "pinnedVersion")]
    pub pin: Option<String>,
    /// Channels of a ClusterExtension that names none, so that all count, or several. Each of them
    /// counts.
    #[serde(skip)]
    pub channels: Option<Vec<String>>,
    /// True for a ClusterExtension.
    #[serde(skip)]
    pub is_extension: bool,
    /// True if nothing tells its package.
    #[serde(skip)]
    pub lacks_package: bool,
    /// Values of `olm.maxOpenShiftVersion`, if they are known. Of several the first two.
    #[serde(skip)]
    pub max_openshift: Option<Vec<String>>,
}

/// Approval of the steps of a Subscription: `installPlanApproval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum StepApproval {
    /// OLM v0 takes each step by itself.
    Automatic,
    /// A person approves each step.
    Manual,
}

/// Operators of a cluster, and what was left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Operators in the order of the input. Those that only have a ClusterServiceVersion come last.
    pub operators: Vec<InstalledOperator>,
    /// Remarks for people: objects that are no operators yet.
    pub notices: Vec<String>,
}

impl InstalledOperator {
    /// Returns an operator of which only the name of its bundle is known.
    pub(crate) fn of_bundle(name: &str) -> Self {
        Self {
            package: name.to_owned(),
            bundle: Some(name.to_owned()),
            lacks_package: true,
            ..Self::default()
        }
    }

    /// Returns the start of the ways of the operator.
    pub fn step(&self) -> UpgradeStep {
        UpgradeStep::start(
            self.bundle.as_deref().unwrap_or_default(),
            self.version.as_deref(),
        )
    }

    /// Returns true if the operator moves on when its catalog has a step, without approval.
    pub(crate) fn moves_by_itself(&self) -> bool {
        if self.is_extension {
            return self.pin.is_none();
        }
        self.install_plan_approval == Some(StepApproval::Automatic)
    }
}

/// Catalog with the packages that are installed.
#[derive(Debug, Default)]
pub struct PlanCatalog {
    /// Name by which messages call the catalog.
    pub name: String,
    /// Image or other source, as an ImageSetConfiguration names it.
    pub source: String,
    /// Names of the CatalogSources and ClusterCatalogs by which clusters use it.
    pub cluster_names: BTreeSet<String>,
    /// Packages that are installed, by name.
    pub packages: BTreeMap<String, Package>,
}

/// State of a cluster, and where it goes.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// Installed operators.
    pub installed: &'a [InstalledOperator],
    /// Catalogs that the cluster uses now.
    pub from: &'a [PlanCatalog],
    /// Catalogs after the upgrade of the cluster.
    pub to: &'a [PlanCatalog],
    /// Version of OpenShift after the upgrade. Without it `olm.maxOpenShiftVersion` does not count.
    pub cluster: Option<OpenShiftMinor>,
    /// Day for which the support is told.
    pub on: Day,
}
